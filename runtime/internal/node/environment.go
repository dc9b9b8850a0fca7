package node

import (
	"slices"
	"strings"
)

// Lang is the locale that every run has unless its caller sets another.
const Lang = "C.UTF-8"

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

// StartVariable returns the name of the first variable in env, a list of NAME=value, that
// only a newly started Node reads. It returns "" if a zygote can become a run with this
// environment. A missing LANG has the same effect as Lang.
func StartVariable(env []string) string {
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if name == "LANG" && value != Lang || slices.Contains(startVariables, name) || slices.ContainsFunc(startPrefixes, hasPrefix) {
			return name
		}
	}
	return ""
}
