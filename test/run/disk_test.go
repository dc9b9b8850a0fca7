package run

import (
	"fmt"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// A run writes and reads twenty times as many bytes as it has memory.
func TestLargeDisk(t *testing.T) {
	tier.Soak(t)
	const files, size = 5, 5 << 30
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Disk: size + 64<<20}})
	res := harness.Run(t, rt, fmt.Sprintf(`
		const files = %d, size = %d;
		const fs = require('fs'), piece = Buffer.alloc(1 << 20, 7);
		let read = 0;
		for (let i = 0; i < files; i++) {
			const f = fs.openSync('/tmp/' + i, 'w+');
			for (let n = 0; n < size / files; n += fs.writeSync(f, piece));
		}
		for (let i = 0; i < files; i++) {
			const f = fs.openSync('/tmp/' + i);
			for (let n; n = fs.readSync(f, piece); read += n) if (piece[n - 1] !== 7) throw new Error('lost');
		}
		__return(read)`, files, size), runtime.RunOptions{Name: "x.cjs", Timeout: -1})
	if string(res.Value) != fmt.Sprint(size) {
		t.Errorf("%s, %d: read %s bytes\n%s", res.Cause, res.ExitCode, res.Value, res.Stderr)
	}
	if r, err := rt.Resources(t.Context()); err != nil || r.Disk < size {
		t.Errorf("%+v, %v", r, err)
	}
}

// Snapshots and later runs see the same files, whether the tree is in memory or on disk.
func TestDiskKeepsFiles(t *testing.T) {
	disk := runtime.Limits{Disk: 256 << 20}
	rt := harness.Create(t, runtime.Options{Limits: disk, Files: map[string][]byte{"/workspace/given": []byte("given")}})
	harness.Run(t, rt, `require('fs').writeFileSync('/workspace/kept', 'kept')`, runtime.RunOptions{Name: "x.cjs"})
	s, err := rt.Snapshot(t.Context(), runtime.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []runtime.Options{{Snapshot: s.ID}, {Snapshot: s.ID, Limits: disk}} {
		res := harness.Run(t, harness.Create(t, o), `__return(['given', 'kept'].map((f) => require('fs').readFileSync('/workspace/' + f, 'utf8')))`, runtime.RunOptions{Name: "x.cjs"})
		if string(res.Value) != `["given","kept"]` {
			t.Errorf("%s\n%s", res.Value, res.Stderr)
		}
	}
}
