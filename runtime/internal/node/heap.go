package node

import "strconv"

// Without flags V8 sizes its heap for the machine, and never below 256 MiB. docs/memory.md
// explains how the flags are chosen and what they do not cover.

// HeapFlags returns V8's flags for an old space of the given size. The guest's preload
// resets them once the main thread has its heap, so that workers can set their own limits.
func HeapFlags(oldMiB int64) []string {
	return []string{
		"--max-old-space-size=" + strconv.FormatInt(oldMiB, 10),
		"--max-semi-space-size=" + strconv.FormatInt(semiSpaceMiB(oldMiB), 10),
	}
}

const maxSemiSpace = 64 // MiB, V8's own limit on a large machine

// semiSpaceMiB returns the limit of one semi-space of the young generation: a power of
// two, as V8 rounds it, and at most an eighth of the old space.
func semiSpaceMiB(oldMiB int64) int64 {
	size := int64(1)
	for size < maxSemiSpace && size*2 <= oldMiB/8 {
		size *= 2
	}
	return size
}

// OldSpaceMiB returns the size of the old space for a memory limit in bytes. Node itself
// takes 40 MiB and the young generation up to three semi-spaces. With the rest V8 collects
// garbage, or reports a full heap, before the kernel has to kill the process.
func OldSpaceMiB(memory int64) int64 {
	const node, least = 40, 16
	for semi := int64(maxSemiSpace); semi > 1; semi /= 2 {
		old := memory>>20 - node - 3*semi
		if semi < maxSemiSpace {
			old = min(old, 16*semi-1) // above this, the next larger semi-space applies
		}
		if semiSpaceMiB(old) == semi {
			return max(old, least)
		}
	}
	return least
}
