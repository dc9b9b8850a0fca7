package runtime

import (
	"slices"
	"strings"
)

// startVariables are the variables that Node 22, 24 and 26 read before a zygote forks: a
// forked run would not notice them. test/startvariables_test.go compares the list with what
// Node reads. Other variables are read when they are first needed, which is in the run.
var startVariables = []string{
	// Options, and what belongs to them.
	"NODE_OPTIONS", "NODE_ICU_DATA", "NODE_NO_WARNINGS", "NODE_PENDING_DEPRECATION", "NODE_REDIRECT_WARNINGS",
	"NODE_PRESERVE_SYMLINKS", "NODE_PRESERVE_SYMLINKS_MAIN", "NODE_USE_ENV_PROXY", "NODE_USE_SYSTEM_CA", "NODE_EXTRA_CA_CERTS",

	// Debugging, coverage and the cache of compiled code.
	"NODE_DEBUG", "NODE_DEBUG_NATIVE", "NODE_V8_COVERAGE", "NODE_COMPILE_CACHE", "WATCH_REPORT_DEPENDENCIES",

	// The channel of child_process.fork, and the cluster.
	"NODE_CHANNEL_FD", "NODE_UNIQUE_ID",

	// Libraries: the code that simdutf chooses, and ICU's time zones.
	"SIMDUTF_FORCE_IMPLEMENTATION", "ICU_TIMEZONE_FILES_DIR",

	"LOCPATH", // the C library's
}

// startPrefixes are the beginnings of further ones.
var startPrefixes = []string{
	"LC_",               // the locale, of the C library and of ICU
	"LD_",               // the loader's
	"GLIBC_", "MALLOC_", // the C library's memory
	"OPENSSL_", // its configuration, with the modules that it names, and features of the processor
}

// startVariable returns the name of a variable that a zygote's Node has read, or "" if a
// zygote can become a run with this environment. The zygote's own LANG has the same locale as
// none has.
func startVariable(env []string) string {
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if name == "LANG" && value != baseEnv()["LANG"] || slices.Contains(startVariables, name) || slices.ContainsFunc(startPrefixes, hasPrefix) {
			return name
		}
	}
	return ""
}

// launcher is how the task's process is started by a runtime with a launcher, and why that is
// another one.
func (t *task) launcher(runtimes Launcher) (l Launcher, reason string) {
	if t.script == 0 || runtimes != LauncherZygote {
		return runtimes, ""
	}
	if t.terminal {
		return LauncherExec, "the program has a terminal, and the streams of a forked Node are pipes"
	}
	if name := startVariable(t.env); name != "" {
		return LauncherExec, "Node reads the variable " + name + " when it starts"
	}
	return LauncherZygote, ""
}
