package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs"
)

// environment is the variables of a run.
type environment struct {
	list  []string // as execve takes them
	start string   // the first that only a newly started Node reads, or ""
}

// environment returns the variables of a run: the settings' and more, except for what the
// settings' permissions hide, or the run's own; nil: it has none.
func (s settings) environment(more map[string]string, own *policy.Permissions) (environment, error) {
	env := maps.Clone(s.env)
	if err := overlayEnv(env, more); err != nil {
		return environment{}, optionError("Env", "%w", err)
	}
	// After the overlay: a run can't bring back a variable that the runtime's permissions hide.
	maps.DeleteFunc(env, func(name, _ string) bool { return !s.Permissions.PassesEnv(name) || own != nil && !own.PassesEnv(name) })
	if list, exists := env["PATH"]; exists && s.Commands != nil {
		env["PATH"] = strings.TrimPrefix(list+":"+sandbox.CommandDir, ":")
	}
	list := envList(env)
	return environment{list, startVariable(list)}, nil
}

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

// Sizes of arguments and variables.
const (
	maxString  = 128 << 10 // MAX_ARG_STRLEN of execve(2), including the final NUL
	maxStrings = 768 << 10 // of all arguments, and of all variables: execve(2) allows 2 MiB for both with the usual stack
)

// baseEnv returns the variables that a run has unless the caller replaces them.
func baseEnv() map[string]string {
	return map[string]string{
		"PATH":   vfs.SearchPath,
		"HOME":   string(vfs.Home),
		"USER":   "node",
		"LANG":   nodeLang,
		"TMPDIR": "/tmp",
	}
}

// overlayEnv checks extra and adds it to env.
func overlayEnv(env, extra map[string]string) error {
	for name, value := range extra {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("%q: a variable's name has at least one character and no '=' or NUL", name)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("%q: the value contains a NUL", name)
		case len(name)+len(value)+2 > maxString:
			return fmt.Errorf("%q: longer than %d bytes", name, maxString)
		}
		env[name] = value
	}
	total := 0
	for name, value := range env {
		total += len(name) + len(value) + 2
	}
	if total > maxStrings {
		return fmt.Errorf("all variables together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}

// envList returns variables as execve takes them, in a stable order.
func envList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func checkArgs(args []string) error {
	total := 0
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return optionError("Args", "%q contains a NUL", arg)
		}
		if len(arg) >= maxString {
			return optionError("Args", "an argument has %d bytes, the limit is %d", len(arg), maxString-1)
		}
		total += len(arg) + 1
	}
	if total > maxStrings {
		return optionError("Args", "all together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}
