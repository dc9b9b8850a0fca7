package runtime

import "strconv"

// Without flags V8 sizes its heap for the machine, and never below 256 MiB. What the
// flags are chosen by, and what they leave alone, is in docs/memory.md.

// heapFlags are V8's flags for a limit of the old space. The guest's half resets them once
// the main thread has its heap: see resetHeapFlags in guest/program.cjs.
func heapFlags(oldMiB int64) []string {
	return []string{
		"--max-old-space-size=" + strconv.FormatInt(oldMiB, 10),
		"--max-semi-space-size=" + strconv.FormatInt(semiSpaceMiB(oldMiB), 10),
	}
}

const mostSemiSpace = 64 // MiB, V8's own limit on a large machine

// semiSpaceMiB is the limit of one semi-space of the young generation: a power of two, as
// V8 rounds it, and at most an eighth of the old space.
func semiSpaceMiB(oldMiB int64) int64 {
	size := int64(1)
	for size < mostSemiSpace && size*2 <= oldMiB/8 {
		size *= 2
	}
	return size
}

// heapMiB is the limit of the old space for a memory limit in bytes. Node itself takes 40
// MiB and the young generation up to three semi-spaces: with what is left V8 collects
// its garbage, or reports that the heap is full, before the kernel has to kill.
func heapMiB(memory int64) int64 {
	const node, least = 40, 16
	for semi := int64(mostSemiSpace); semi > 1; semi /= 2 {
		old := memory>>20 - node - 3*semi
		if semi < mostSemiSpace {
			old = min(old, 16*semi-1) // from there on, the next larger semi-space
		}
		if semiSpaceMiB(old) == semi {
			return max(old, least)
		}
	}
	return least
}
