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
		if name := startVariable([]string{"PATH=/bin", "LANG=C.UTF-8", tc.variable}); name != tc.name {
			t.Errorf("%s: %q", tc.variable, name)
		}
	}
	if startVariable(nil) != "" {
		t.Error("an unset LANG counts as the zygote's")
	}
	if startVariable([]string{"LANG=de_DE.UTF-8"}) != "LANG" {
		t.Error("another LANG counts as the zygote's")
	}
}
