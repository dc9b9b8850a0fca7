package runtime

import "testing"

func TestStartVariable(t *testing.T) {
	for _, tc := range []struct {
		variable, name string
	}{
		{"FORCE_COLOR=1", ""},
		{"TZ=Asia/Tokyo", ""},
		{"NODE_ENV=production", ""},
		{"NODE_PATH=/tmp", ""},
		{"NODE_ENVIRONMENT=x", ""},
		{"NODE_TLS_REJECT_UNAUTHORIZED=0", ""},
		{"UV_THREADPOOL_SIZE=8", ""},
		{"SSL_CERT_FILE=/tmp/ca.pem", ""},
		{"NODE_OPTIONS=--no-warnings", "NODE_OPTIONS"},
		{"NODE_EXTRA_CA_CERTS=", "NODE_EXTRA_CA_CERTS"},
		{"LC_ALL=de_DE.UTF-8", "LC_ALL"},
		{"LD_PRELOAD=x.so", "LD_PRELOAD"},
		{"OPENSSL_CONF=/tmp/x", "OPENSSL_CONF"},
	} {
		if name := startVariable(append(envList(baseEnv()), tc.variable)); name != tc.name {
			t.Errorf("%s: %q", tc.variable, name)
		}
	}
	if startVariable(nil) != "" {
		t.Error("no LANG is that of the zygote")
	}
	if startVariable([]string{"LANG=de_DE.UTF-8"}) != "LANG" {
		t.Error("another LANG")
	}
}

func TestLauncherOfTask(t *testing.T) {
	for name, tc := range map[string]struct {
		task     task
		launcher Launcher
		want     Launcher
		reason   bool
	}{
		"a program":                 {task{script: 2}, LauncherZygote, LauncherZygote, false},
		"a program with a variable": {task{script: 2, env: []string{"NODE_OPTIONS=--no-warnings"}}, LauncherZygote, LauncherExec, true},
		"a program on a terminal":   {task{script: 2, terminal: true}, LauncherZygote, LauncherExec, true},
		"a command":                 {task{terminal: true, env: []string{"NODE_OPTIONS="}}, LauncherZygote, LauncherZygote, false},
		"what was asked for":        {task{script: 2, terminal: true}, LauncherExec, LauncherExec, false},
	} {
		if l, reason := tc.task.launcher(tc.launcher); l != tc.want || (reason != "") != tc.reason {
			t.Errorf("%s: %v, %q", name, l, reason)
		}
	}
}
