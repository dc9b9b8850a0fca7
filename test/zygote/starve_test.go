package zygote

import (
	"slices"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// starvers are programs that use as much as they can of something, without end. Each prints
// a line before it begins.
var starvers = map[string]string{
	"processors": `import { spawn } from 'node:child_process';
		for (let i = 0; i < 40; i++) spawn('sh', ['-c', 'while :; do :; done']);
		console.log('up'); setInterval(() => {}, 1000)`,
	"memory": `import { spawnSync } from 'node:child_process'; console.log('up');
		for (;;) spawnSync('sh', ['-c', 'x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done'])`,
	"processes": `import { spawn } from 'node:child_process'; console.log('up');
		spawn('sh', ['-c', 'while :; do sleep 0.001 & sleep 0.001 & sleep 0.001 & sleep 0.001 & done 2>/dev/null'], { stdio: 'ignore' }); setInterval(() => {}, 1000)`,
	"files": `import fs from 'node:fs'; console.log('up'); const b = Buffer.alloc(1 << 20, 1);
		for (;;) { for (let i = 0; i < 40; i++) fs.writeFileSync('f' + i, b, { flush: true }); for (let i = 0; i < 40; i++) fs.rmSync('f' + i) }`,
	"output": `import fs from 'node:fs'; const b = Buffer.alloc(65536, 'x'); for (;;) { fs.writeSync(1, b); fs.writeSync(2, b) }`,
	"values": `console.log('up'); const b = 'x'.repeat(1e6); for (;;) __return(b)`,
	"locks of processes": `import fs from 'node:fs'; console.log('up');
		for (;;) for (const pid of fs.readdirSync('/proc')) if (pid > 0) for (const f of ['maps', 'smaps', 'environ', 'cmdline', 'stat']) try { fs.readFileSync('/proc/' + pid + '/' + f) } catch {}`,
	"flushes": `import { spawn } from 'node:child_process'; console.log('up');
		for (let i = 0; i < 8; i++) spawn('sh', ['-c', 'while :; do sync; done']); setInterval(() => {}, 1000)`,
}

// latency is how long consecutive runs of rt take: the median and the maximum.
func latency(t *testing.T, rt *runtime.NodeRuntime) (middle, most time.Duration) {
	t.Helper()
	const runs = 20
	var times []time.Duration
	for range runs {
		began := time.Now()
		if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
			t.Fatalf("%+v", res)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[runs/2], times[runs-1]
}

// A guest that uses up a resource slows other runs down only a little: its run is limited,
// and the zygote is in none of its cgroups.
func TestZygoteIsNotStarved(t *testing.T) {
	tier.Soak(t)
	starver, other := harness.CreateForking(t, runtime.Options{}), harness.CreateForking(t, runtime.Options{})
	latency(t, other) // starts the zygote
	for name, code := range starvers {
		t.Run(name, func(t *testing.T) {
			for whose, rt := range map[string]*runtime.NodeRuntime{"another runtime": other, "the same runtime": starver} {
				var middle, most, usual time.Duration
				for range 3 { // other work on the machine may slow down either measurement
					stop := harness.StartProgram(t, starver, code)
					middle, most = latency(t, rt)
					stop()
					usual, _ = latency(t, other)
					t.Logf("%s: %v, at most %v; usually %v", whose, middle.Round(100*time.Microsecond), most.Round(100*time.Microsecond), usual.Round(100*time.Microsecond))
					if middle <= 10*usual { // two to four times was measured on two shared processors
						break
					}
				}
				if middle > 10*usual || most > 20*time.Second {
					t.Errorf("runs of %s take %v, and %v at most; usually %v", whose, middle, most, usual)
				}
			}
		})
	}
}
