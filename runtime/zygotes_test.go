package runtime

import (
	"errors"
	"testing"

	"gaol/rootfs"
)

func TestLauncherCheck(t *testing.T) {
	for _, tc := range []struct {
		launcher Launcher
		node     string
		ok       bool
	}{
		{LauncherExec, "26.10.0", true},
		{LauncherZygote, "22.22.0", true},
		{LauncherZygote, "24.21.0", true},
		{LauncherZygote, "26.10.0", true},
		{LauncherZygote, "20.19.0", false},
		{LauncherZygote, "28.0.0", false},
		{LauncherZygote, "", false},
	} {
		err := tc.launcher.check(&rootfs.Image{Node: tc.node})
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v with Node %q: %v", tc.launcher, tc.node, err)
		}
	}
}

func TestReadByZygote(t *testing.T) {
	for _, tc := range []struct {
		variable string
		read     bool
	}{
		{"FORCE_COLOR=1", true},
		{"TZ=Asia/Tokyo", true},
		{"NODE_ENV=production", true},
		{"UV_THREADPOOL_SIZE=8", true},
		{"UV_USE_IO_URING=1", false},
		{"NODE_ENVIRONMENT=x", false},
		{"NODE_OPTIONS=--no-warnings", false},
		{"LC_ALL=de_DE.UTF-8", false},
		{"SSL_CERT_FILE=/tmp/ca.pem", false},
	} {
		if read := readByZygote(append(envList(baseEnv()), tc.variable)); read != tc.read {
			t.Errorf("%s: %v", tc.variable, read)
		}
	}
	if !readByZygote(nil) {
		t.Error("no LANG is that of the zygote")
	}
	if readByZygote([]string{"LANG=de_DE.UTF-8"}) {
		t.Error("another LANG")
	}
}
