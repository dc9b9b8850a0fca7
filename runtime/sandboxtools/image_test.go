package sandboxtools

import (
	"testing"

	"gaol/rootfs"
)

// TestImageNames: a name that no option lists leads neither to a registry nor to a file.
func TestImageNames(t *testing.T) {
	for name, o := range map[string]Options{"store": {}, "list": {Images: map[string]string{"app": ""}}} {
		o.Create.Store = t.TempDir()
		b := newTestToolbox(t, o)
		want := map[string]Code{"store": NotFound, "list": Permission}[name]
		for _, image := range []string{"registry.example/app:1", "docker://app:1", "/etc", "./x", "App", "sha256:0123"} {
			if _, err := b.image(t.Context(), image); CodeOf(err) != want {
				t.Errorf("%s: %s: %v", name, image, err)
			}
		}
	}
}

func TestImageCodes(t *testing.T) {
	for _, row := range imageCodes {
		for _, cause := range row.causes {
			err := &rootfs.StepError{Op: "import s", Step: "open", Err: cause}
			if code := findCode(imageCodes, err); code != row.code || code == Internal {
				t.Errorf("%v: %v", cause, code)
			}
		}
	}
}
