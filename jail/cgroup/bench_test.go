package cgroup

import "testing"

// BenchmarkRunGroup measures the cost of a run's group without its processes.
func BenchmarkRunGroup(b *testing.B) {
	for _, s := range subjects(b) {
		b.Run(s.name, func(b *testing.B) {
			pool := NewPool(s.group(b, Limits{}))
			limits := Limits{}
			if s.limits {
				limits = Limits{Memory: 256 << 20, CPUs: 1, Pids: 64}
			}
			for b.Loop() {
				g, err := pool.New(limits)
				if err != nil {
					b.Fatal(err)
				}
				kill(b, g)
				if s.limits {
					if _, err := g.Usage(); err != nil {
						b.Fatal(err)
					}
				}
				if err := pool.Delete(g, Usage{PeakPids: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAddPID moves a process back and forth. On v1 each of the five moves may wait
// until all processors pass a quiescent state.
func BenchmarkAddPID(b *testing.B) {
	for _, s := range subjects(b) {
		b.Run(s.name, func(b *testing.B) {
			g1, g2 := s.group(b, Limits{}), s.group(b, Limits{})
			pid := guest(b, g1, "sleep").Process.Pid
			for b.Loop() {
				g1, g2 = g2, g1
				if err := g1.AddPID(pid); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkKill kills a group of two processes.
func BenchmarkKill(b *testing.B) {
	for _, s := range subjects(b) {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				g := s.group(b, Limits{})
				guest(b, g, "sleep")
				guest(b, g, "sleep")
				b.StartTimer()
				kill(b, g)
			}
		})
	}
}

// BenchmarkNamespaceRoot measures the cost of a jail's group.
func BenchmarkNamespaceRoot(b *testing.B) {
	devices := []Device{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}, {136, AnyMinor}}
	parent, err := NewNamespaceRoot("/gaol-test-bench", devices)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g, err := NewNamespaceRoot(parent.path+"/root", devices)
		if err == nil {
			err = g.Delete()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := parent.Delete(); err != nil {
		b.Error(err)
	}
}
