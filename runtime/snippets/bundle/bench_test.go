package bundle

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// typical is a snippet of two files, as in the documentation of a framework.
var typical = []File{
	{"src/main.ts", `import { createModule, createSystem } from '@scope/framework';
import { counter, type Counter } from './counter.js';

const module = createModule('counter', {
  schema: { facts: { count: 'number', log: 'string[]' } },
  init: (facts: Counter) => { facts.count = 0; facts.log = []; },
  derive: { doubled: (facts: Counter) => facts.count * 2 },
});
const system = createSystem({ module });
system.start();
for (let i = 0; i < 3; i++) counter(system.facts as Counter, i);
console.log('count', system.facts.count, system.derive.doubled);
if (system.facts.count !== 3) throw new Error('expected 3, got ' + system.facts.count);
`},
	{"src/counter.ts", `export interface Counter { count: number; log: string[] }

/** counter counts one step, and logs it. */
export function counter(facts: Counter, step: number, by: number = 1): void {
  facts.count += by;
  facts.log = [...facts.log, ` + "`step ${step}: ${facts.count}`" + `];
}
`},
}

func BenchmarkBundle(b *testing.B) {
	folder := install(b)
	write(b, folder+"/@scope/framework/package.json", `{"name": "@scope/framework", "type": "module", "main": "index.js"}`)
	write(b, folder+"/@scope/framework/index.js", "export const createModule = (n, o) => o; export const createSystem = (o) => o;")
	p := newPackages(b, folder)
	for _, bc := range []struct {
		name  string
		files []File
		o     Options
	}{
		{"Typical", typical, Options{Packages: p, Mount: "/packages", Run: inProcess}},
		{"Smallest", []File{{"src/main.ts", "console.log(1)"}}, Options{Run: inProcess}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			before := cpuTime()
			for b.Loop() {
				if _, problems, err := Bundle(b.Context(), bc.files, bc.o); err != nil || len(problems) > 0 {
					b.Fatal(problems, err)
				}
			}
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
		})
	}
}

// cpuTime returns the processor time of this process, which depends less than wall-clock time
// on what else a machine does.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
