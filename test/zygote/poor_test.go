package zygote

import (
	"strings"
	"testing"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/zygote"
	"gaol/test/harness"
)

// On kernels without PR_GET_TID_ADDRESS and PR_SET_MM, such as gVisor's, programs end however they do: a thread that was
// revived at a wrong address would never be joined.
func TestZygoteWithoutCallsOfPrctl(t *testing.T) {
	source := zygote.Source
	for call, times := range map[string]int{"prctl(PR_GET_TID_ADDRESS,": 1, "prctl(PR_SET_MM,": 2} {
		if strings.Count(source, call) != times {
			t.Fatalf("%q is not in the source %d times", call, times)
		}
		source = strings.ReplaceAll(source, call, "prctl(12345,") // EINVAL
	}
	image := harness.DefaultImage(t)
	object, j := compileFaulty(t, source), jailOf(t, image)
	for end, want := range map[string]int{"process.exit(7)": 7, "throw new Error('x')": 1, "Promise.reject(new Error('x'))": 1} {
		const work = `for (let i = 0; i < 300; i++) new Array(10000).fill(i).map((i) => ({ i })); globalThis.gc();`
		const check = `const { readdirSync } = require('node:fs'); if (readdirSync('/proc/self/task').length < 2) process.exit(2);`
		pool := zygoteWith(t, image, object, "serve(); receive();"+work+check+end, "--v8-pool-size=4", "--expose-gc")
		c := jail.Command{Zygote: pool, OpenFiles: 64, Limits: cgroup.Limits{Memory: 256 << 20, CPUs: 1, Pids: 16}}
		if exit, err := runOnce(t, j, c, 3*whole); err != nil || exit.Code != want {
			t.Errorf("%s: %+v, %v, want code %d", end, exit, err, want)
		}
		harness.CheckNoRuns(t)
	}
}
