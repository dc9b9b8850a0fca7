package run

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// resources is what Node reports about a process, in MiB.
type resources struct {
	Total, Constrained, Available, Heap int
	CPUs                                int
	Parallelism                         int
}

const askResources = `
	const os = require('node:os'), v8 = require('node:v8'), mib = (n) => Math.floor(n / 2 ** 20);
	const asked = { total: mib(os.totalmem()), constrained: mib(process.constrainedMemory()), available: mib(process.availableMemory()),
		heap: mib(v8.getHeapStatistics().heap_size_limit), cpus: os.cpus().length, parallelism: os.availableParallelism() };`

// askEverywhere asks in a program, in a worker and in a child process.
const askEverywhere = `import { createRequire } from 'node:module';
	import { Worker } from 'node:worker_threads'; import { execFileSync } from 'node:child_process';
	const require = createRequire('/workspace/x.js');` + askResources + `
	const ask = ` + "`" + askResources + "`" + `;
	const worker = await new Promise((resolve, reject) => new Worker(ask + 'require("node:worker_threads").parentPort.postMessage(asked)', { eval: true })
		.on('message', resolve).on('error', reject));
	let child = worker;
	try { child = JSON.parse(execFileSync(process.execPath, ['-e', ask + 'console.log(JSON.stringify(asked))'])); } catch (err) { if (err.code !== 'EPERM') throw err; }
	__return({ program: asked, worker, child })`

// Node chooses its sizes by the limits, in the program and in its children.
func TestResources(t *testing.T) {
	for _, tc := range []struct {
		name   string
		o      runtime.Options
		memory int
		heap   int
		cpus   int
	}{
		{"default", runtime.Options{}, 256, 168 + 3*16, 1},
		{"small", runtime.Options{Limits: runtime.Limits{Memory: 128 << 20, CPUs: 0.5}}, 128, 64 + 3*8, 1},
		{"large", runtime.Options{Limits: runtime.Limits{Memory: 1 << 30, CPUs: 1.5}}, 1024, 792 + 3*64, 2},
		// Without Landlock's newest rights, the files are the same.
		{"strict", runtime.Options{Permissions: policy.Strict(), AllowDegraded: true}, 256, 168 + 3*16, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := harness.Run(t, harness.Create(t, tc.o), askEverywhere, runtime.RunOptions{})
			var got struct{ Program, Worker, Child resources }
			if err := res.Decode(&got); err != nil {
				t.Fatalf("%v: %s", err, res.Stderr)
			}
			want := resources{Total: tc.memory, Constrained: tc.memory, Available: tc.memory, Heap: tc.heap, CPUs: min(tc.cpus, hostProcessors(t)), Parallelism: got.Program.Parallelism}
			if diff := cmp.Diff(want, got.Program); diff != "" {
				t.Errorf("program (-want +got):\n%s", diff)
			}
			most := hostProcessors(t)
			if strings.HasPrefix(harness.Lines("/proc/self/cgroup")[0], "0::/") { // on v2, libuv reads the limit
				most = 1
			}
			if want.Parallelism < 1 || want.Parallelism > most {
				t.Errorf("parallelism of %d", want.Parallelism)
			}
			// Node itself chooses half of that memory, but at least 256 MiB, and a small young generation.
			want.Heap = max(256, tc.memory/2)
			for name, other := range map[string]resources{"worker": got.Worker, "child": got.Child} {
				if young := other.Heap - want.Heap; young < 1 || young > 48 {
					t.Errorf("%s: a heap of %d MiB", name, other.Heap)
				}
				other.Heap = want.Heap
				if diff := cmp.Diff(want, other); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// The young generation is bounded, so that it leaves room for the rest of the memory.
func TestYoungGeneration(t *testing.T) {
	tier.Soak(t)
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 128 << 20}})
	res := harness.Run(t, rt, `import v8 from 'node:v8';
		const kept = new Map();
		let most = 0;
		for (let i = 0; i < 2e6; i++) {
			kept.set(i % 60_000, { i, list: [i, i + 1], text: 'x' + i });
			if (i % 50_000 === 0) most = Math.max(most, v8.getHeapSpaceStatistics().find((s) => s.space_name === 'new_space').space_size);
		}
		__return(most / 2 ** 20)`, runtime.RunOptions{})
	var most float64
	if err := res.Decode(&most); err != nil || most < 4 || most > 2*8+2 { // V8 may use a page or two more
		t.Errorf("a new space of %v MiB, %v: %s%+v", most, err, res.Stderr, res.Cause)
	}
}

// The heap flags of the main thread do not override a worker's limits. Resetting them
// neither enlarges the main thread's heap nor changes the tag by which V8 accepts cached
// code.
func TestWorkerLimits(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res := harness.Run(t, rt, `import { Worker } from 'node:worker_threads'; import v8 from 'node:v8';
		const start = (code, resourceLimits) => new Promise((resolve) => new Worker(code, { eval: true, resourceLimits })
			.on('message', resolve).on('error', (err) => resolve(err.code)));
		const limit = 'require("node:worker_threads").parentPort.postMessage(require("node:v8").getHeapStatistics().heap_size_limit / 2 ** 20)';
		const fill = 'const kept = []; for (;;) kept.push({ a: [kept.length] })';
		__return({
			old: await start(limit, { maxOldGenerationSizeMb: 20 }), young: await start(limit, { maxOldGenerationSizeMb: 20, maxYoungGenerationSizeMb: 12 }),
			full: await start(fill, { maxOldGenerationSizeMb: 20 }),
			main: v8.getHeapStatistics().heap_size_limit / 2 ** 20, tag: v8.cachedDataVersionTag(),
		})`, runtime.RunOptions{})
	type limits struct {
		Old, Young, Main float64
		Full             string
		Tag              int64
	}
	var got limits
	if err := res.Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, res.Stderr)
	}
	tag, err := strconv.ParseInt(strings.TrimSpace(harness.Output(t, rt, runtime.RunOptions{}, "node", "-p", "v8.cachedDataVersionTag()")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := limits{Old: 23, Young: 32, Full: "ERR_WORKER_OUT_OF_MEMORY", Main: 216, Tag: tag}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
