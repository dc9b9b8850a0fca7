package evaluate

import (
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// Options.Heap is the heap of all programs that have no other.
func TestHeap(t *testing.T) {
	create := harness.Create
	if harness.Needs(t, runtime.FeaturePark) {
		create = harness.CreateParked
	}
	rt := create(t, runtime.Options{Heap: 32 << 20})
	const size = `(await import('node:v8')).getHeapStatistics().heap_size_limit >> 20`
	for _, tc := range []struct {
		heap int64
		want string
	}{{0, "44"}, {16 << 20, "22"}, {64 << 20, "88"}} {
		e, err := rt.Evaluate(t.Context(), size, runtime.EvaluateOptions{Heap: tc.heap})
		if err != nil || string(e.Value) != tc.want {
			t.Errorf("%d: %s MiB, want %s: %v", tc.heap, e.Value, tc.want, err)
		}
	}
	res, err := rt.Run(t.Context(), `__return(`+size+`)`, runtime.RunOptions{})
	if err != nil || string(res.Value) != "44" {
		t.Errorf("Run: %s, %v", res.Value, err)
	}
}
