package cgroup

// cpuPeriod, in microseconds, is the kernel's default.
const cpuPeriod = 100_000

// quota is the processor time, in microseconds, that l allows in a period.
func (l Limits) quota() int64 {
	const least = 1000 // the kernel refuses less
	return max(least, int64(l.CPUs*cpuPeriod))
}
