package runtime

import (
	"slices"
	"strconv"
	"strings"
)

// nodeLang is the locale that every run has unless its caller sets another.
const nodeLang = "C.UTF-8"

// startVariables are the variables that Node 22, 24 and 26 read before a zygote forks, so
// that a forked run would ignore them. A test compares the list with what Node reads. Node
// reads other variables when it first needs them, which is during the run.
var startVariables = []string{
	// Node's options.
	"NODE_OPTIONS", "NODE_ICU_DATA", "NODE_NO_WARNINGS", "NODE_PENDING_DEPRECATION", "NODE_REDIRECT_WARNINGS",
	"NODE_PRESERVE_SYMLINKS", "NODE_PRESERVE_SYMLINKS_MAIN", "NODE_USE_ENV_PROXY", "NODE_USE_SYSTEM_CA", "NODE_EXTRA_CA_CERTS",

	// Debugging, coverage and the compile cache.
	"NODE_DEBUG", "NODE_DEBUG_NATIVE", "NODE_V8_COVERAGE", "NODE_COMPILE_CACHE", "WATCH_REPORT_DEPENDENCIES",

	// The channel of child_process.fork, and the cluster.
	"NODE_CHANNEL_FD", "NODE_UNIQUE_ID",

	// Libraries: the implementation that simdutf chooses, and ICU's time zones.
	"SIMDUTF_FORCE_IMPLEMENTATION", "ICU_TIMEZONE_FILES_DIR",

	"LOCPATH", // the C library's locales
}

// startPrefixes are prefixes of further such variables.
var startPrefixes = []string{
	"LC_",               // the locale, of the C library and of ICU
	"LD_",               // the dynamic loader
	"GLIBC_", "MALLOC_", // the C library's allocator
	"OPENSSL_", // OpenSSL's configuration, with the modules that it names, and processor features
}

// startVariable returns the name of the first variable in env, a list of NAME=value, that
// only a newly started Node reads. It returns "" if a zygote can become a run with this
// environment. A missing LANG is equivalent to nodeLang.
func startVariable(env []string) string {
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if name == "LANG" && value != nodeLang || slices.Contains(startVariables, name) || slices.ContainsFunc(startPrefixes, hasPrefix) {
			return name
		}
	}
	return ""
}

// Without flags V8 sizes its heap for the machine, and never below 256 MiB. docs/memory.md
// explains how the flags are chosen, and which memory they do not limit.

// heapFlags returns V8's flags for an old space of the given size. The guest's preload
// resets them once the main thread has its heap, so that workers can set their own limits.
func heapFlags(oldMiB int64) []string {
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

// oldSpaceMiB returns the size of the old space for a memory limit in bytes. Node itself
// takes 40 MiB and the young generation up to three semi-spaces. With the rest V8 collects
// garbage, or reports a full heap, before the kernel has to kill the process.
func oldSpaceMiB(memory int64) int64 {
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
