package seccomp

import "golang.org/x/sys/unix"

// The pages of the image are in one page cache for all sandboxes. A sandbox that could remove a page,
// or find out without reading it whether it is cached, would learn what others read, and two sandboxes
// could communicate. mincore reports pages of other owners' files as cached since Linux 5.2, and
// cachestat is in Denied.

// noCacheAdvice: POSIX_FADV_DONTNEED removes pages of files that the caller can only read. All advice
// has an effect on performance only, so programs can't miss it.
var noCacheAdvice = []Refusal{{NoEffect: true}}

// ioFlags refuses RWF_NOWAIT, which fails if a page is not cached, and RWF_DONTCACHE, which removes
// pages. EOPNOTSUPP is the kernel's errno for unknown flags.
var ioFlags = refuse(unix.EOPNOTSUPP, anyBit(5, int32Mask&^(unix.RWF_HIPRI|unix.RWF_DSYNC|unix.RWF_SYNC|unix.RWF_APPEND)))

// ownMemory allows advice that affects only the caller's memory. MADV_COLD and MADV_PAGEOUT affect the page
// cache, MADV_COLLAPSE changes its pages, and MADV_MERGEABLE merges equal pages of all sandboxes, which the
// time of a write shows. EINVAL is the errno for unknown advice.
var ownMemory = refuse(unix.EINVAL, isNot(2,
	unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED, unix.MADV_DONTNEED,
	unix.MADV_FREE, unix.MADV_REMOVE, unix.MADV_DONTFORK, unix.MADV_DOFORK, unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE,
	unix.MADV_DONTDUMP, unix.MADV_DODUMP, unix.MADV_WIPEONFORK, unix.MADV_KEEPONFORK,
	unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE, unix.MADV_DONTNEED_LOCKED,
	madvGuardInstall, madvGuardRemove,
))

const (
	madvGuardInstall = 102 // MADV_GUARD_INSTALL, Linux 6.13: glibc's stacks
	madvGuardRemove  = 103 // MADV_GUARD_REMOVE
)
