package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// A run that fails because a limit of disk, files or memory is reached says so, and no other run.
func TestLimitsReached(t *testing.T) {
	for _, mib := range []int{1, 80} { // in memory, and on disk
		t.Run(fmt.Sprintf("%d MiB", mib), func(t *testing.T) { testLimitsReached(t, mib) })
	}
}

func testLimitsReached(t *testing.T, mib int) {
	limit := func(name, target, rule string, source runtime.DenialSource) []runtime.Denial {
		return []runtime.Denial{{Scope: "limits", Operation: policy.Operation(name), Target: target, Rule: rule, Count: 1, Source: source}}
	}
	disk := func(source runtime.DenialSource) []runtime.Denial {
		return limit("disk", fmt.Sprintf("%d MiB", mib), "limits.diskBytes", source)
	}
	large, long := fmt.Sprintf(`fs.writeFileSync('large', Buffer.alloc(%d << 20))`, 2*mib), fmt.Sprintf(`fs.writeFileSync('long', ''); fs.truncateSync('long', %d << 20)`, 2*mib)
	const many = `for (let i = 0; ; i++) fs.mkdirSync('d' + i)`
	clean := func(code string) string {
		return "try {" + code + "} finally { for (const f of fs.readdirSync('.')) fs.rmSync(f, { recursive: true }) }"
	}
	limits := runtime.Limits{Disk: int64(mib) << 20, Memory: 256 << 20}
	limitsFiles := harness.Needs(t, runtime.FeatureFiles)
	if limitsFiles {
		limits.Files = 200
	}
	rt := harness.Create(t, runtime.Options{Limits: limits})
	for _, tc := range []struct {
		name, code string
		want       []runtime.Denial
	}{
		{"a full disk", large, disk(runtime.SourceLimits)},
		{"a full disk, emptied", clean(large), disk(runtime.SourceStderr)},
		{"a long file", long, disk(runtime.SourceStderr)},
		{"too many files", many, limit("files", "200", "limits.files", runtime.SourceLimits)},
		{"too many files, removed", clean(many), limit("files", "200", "limits.files", runtime.SourceStderr)},
		{"killed", "try {" + large + "} catch {}; process.kill(process.pid, 'SIGKILL')", disk(runtime.SourceLimits)},
		{"caught", "try {" + large + "} catch {}", nil},
		{"another error", "try {" + clean(large) + "} catch {}; fs.readFileSync('none')", nil},
	} {
		if strings.Contains(tc.code, many) && !limitsFiles {
			continue
		}
		code := "import fs from 'node:fs';" + tc.code
		if diff := cmp.Diff(tc.want, harness.Run(t, rt, code, runtime.RunOptions{}).Denials); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", tc.name, diff)
		}
		harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "rm -rf /workspace/*")
	}
}

// The error of a snippet or cell names the limit.
func TestLimitsReachedBySnippets(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Disk: 1 << 20}})
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{`require('fs').writeFileSync('large', Buffer.alloc(2 << 20))`, `require('fs').writeFileSync('small', 'x')`} {
		for name, evaluate := range map[string]func(context.Context, string, runtime.EvaluateOptions) (*runtime.Evaluation, error){"snippet": rt.Evaluate, "cell": c.Evaluate} {
			e, err := evaluate(t.Context(), code, runtime.EvaluateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Denials) != 1 || e.Denials[0].Rule != "limits.diskBytes" || e.Error == nil || e.Error.Denied != "limits.diskBytes" {
				t.Errorf("%s: %v, denials %+v", name, e.Error, e.Denials)
			}
		}
	}
	if e, err := c.Evaluate(t.Context(), "1", runtime.EvaluateOptions{}); err != nil || e.Denials != nil {
		t.Errorf("a cell that succeeds: %+v, %v", e, err)
	}
}

// If files in memory have taken a part of the memory of a run that is killed for it, the result says how much.
func TestMemoryOfFiles(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 128 << 20}})
	const allocate = `const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))`
	res := harness.Run(t, rt, `import fs from 'node:fs'; fs.writeFileSync('large', Buffer.alloc(60 << 20, 1));`+allocate, runtime.RunOptions{})
	i := slices.IndexFunc(res.Denials, func(d runtime.Denial) bool { return d.Rule == "limits.memoryBytes" })
	if harness.InGVisor() && res.Cause == runtime.CauseMemory && res.Denials == nil { // it does not count files in memory
		return
	}
	if res.Cause != runtime.CauseMemory || i < 0 {
		t.Fatalf("cause %q, exit code %d, denials %+v", res.Cause, res.ExitCode, res.Denials)
	}
	var total, held int
	if _, err := fmt.Sscanf(res.Denials[i].Target, "%d MiB, of which files in memory take %d MiB", &total, &held); err != nil || total != 128 || held < 32 || held > 128 {
		t.Errorf("%q, %v", res.Denials[i].Target, err)
	}
	harness.Output(t, rt, runtime.RunOptions{}, "rm", "large")
	res = harness.Run(t, rt, allocate, runtime.RunOptions{})
	if res.Cause != runtime.CauseMemory || res.Denials != nil {
		t.Errorf("without files: cause %q, denials %+v", res.Cause, res.Denials)
	}
}
