package mounts

import "testing"

func TestWithAbsolute(t *testing.T) {
	const options = layers + ",upperdir=upper,workdir=work,redirect_dir=off"
	const want = "lowerdir=/s/layer:/s/image,upperdir=/s/upper,workdir=/s/work,redirect_dir=off"
	if got := withAbsolute(options, "/s/"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
