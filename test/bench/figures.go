package main

import (
	goruntime "runtime"
	"slices"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// fixtures holds what figures share.
type fixtures struct {
	quick    bool
	snapshot *runtime.Snapshot // of many small files; nil until a figure needs it
}

// figures returns all figures, in the order of the report.
// Programs that do something with their files, such as project, do not pay what the
// file-heavy one pays on a snapshot, overlayfs's own cost of a call. So that is without a bar.
func (x *fixtures) figures() []bench.Figure {
	const http = "HTTP over loopback by bare node"
	return slices.Concat(bench.Figures(), []bench.Figure{
		{ID: "run-consecutive", Name: "warm run right after another, p50", Unit: "ms", Measure: x.consecutiveRuns},
		{ID: "pool-get-run", Name: "Get + Run of a pool, at 20 a second", Unit: "ms", Measure: x.pooled},
		{ID: "idle-memory", Name: "memory of an idle runtime, PSS", Unit: "MB", Measure: x.idleMemory},
		{ID: "program-memory", Name: "memory of one more running program, private", Unit: "MB", Measure: x.programMemory},
		{ID: "compute", Name: "compute-bound program", Unit: "ms", Measure: x.whole("compute", 2000, false)},
		{ID: "json", Name: "JSON program", Unit: "ms", Measure: x.whole("json", 450, false)},
		{ID: "garbage", Name: "GC-heavy program", Unit: "ms", Measure: x.whole("garbage", 640, false)},
		{ID: "files", Name: "file-heavy program", Unit: "ms", Measure: x.whole("files", 160, false)},
		{ID: "stream-callback", Name: "1 GiB of output by OnStdout, against node | cat", Unit: "MB/s", Measure: x.streamed},
		{ID: "run-strict", Name: "warm run, all permissions denied, against default ones, p50", Unit: "ms", Against: "permissions by default", Measure: x.strictRuns},
		{ID: "create-snapshot", Name: "Create with a snapshot of 30,000 small files, against none, p50", Unit: "ms", Against: "Create without", Measure: x.createOnSnapshot},
		{ID: "project-snapshot", Name: "a project's file work, on a snapshot", Unit: "ms", Measure: x.whole("project", 60, true)},
		{ID: "call", Name: "call of a host function, against HTTP, p50", Unit: "µs", Against: http, Measure: x.called(func(t callTimes) float64 { return t.Median })},
		{ID: "calls", Name: "calls of a host function at once, against HTTP", Unit: "calls/s", Against: http, Measure: x.called(func(t callTimes) float64 { return t.Rate })},
		{ID: "evaluate", Name: "Evaluate, against Run of the same, p50", Unit: "ms", Against: "Run of the same", Measure: x.evaluations},
		{ID: "normalize", Name: "Normalize of 20 KB of TypeScript, p50", Unit: "ms", Measure: x.normalizations},
		{ID: "live-many", Name: "warm run beside 1,000 idle runtimes, against none, p50", Unit: "ms", Against: "the same without them", Measure: x.besideIdle},
		{ID: "files-snapshot", Name: "file calls alone, on a snapshot", Unit: "ms", Measure: x.whole("files", 160, true)},
		{ID: "overtime", Name: "return after a timeout, p50", Unit: "ms", Measure: x.overtime},
	})
}

// raiseLimits raises limits so that they do not affect the measurement: Node's helper
// threads are as free as bare Node's.
func raiseLimits(o *runtime.Options) {
	o.Limits.CPUs = float64(max(2, goruntime.NumCPU()))
	o.Limits.Memory = 1 << 30
	o.Limits.Disk = 256 << 20
}
