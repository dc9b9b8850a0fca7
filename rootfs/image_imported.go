package rootfs

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"gaol/rootfs/oci"
)

// ImportedConfig is an imported image's own description of how to start it. It is recorded
// for users. gaol itself uses only PATH, see [Image.Path].
type ImportedConfig = oci.Config

// Imported describes an image that was imported.
type Imported struct {
	Source string         `json:"source"`           // as it was passed to Import
	Kind   string         `json:"kind"`             // "registry", "oci-layout", "docker-archive", "tar", "folder"
	Digest string         `json:"digest,omitempty"` // of its manifest
	Config ImportedConfig `json:"config"`
	Blobs  []string       `json:"blobs,omitempty"` // the layers that the store keeps for it

	// NodePath is the guest path of its Node, without links; "" without Node.
	NodePath string `json:"nodePath,omitempty"`

	// Libraries are those of /lib and /lib64 that are real folders, not links into /usr.
	Libraries []string `json:"libraries,omitempty"`

	// Libc is the C library of its Node: "glibc", "musl", "static", or "" without Node.
	Libc string `json:"libc,omitempty"`

	// Zygote says that its Node can load the shared object that makes a zygote.
	Zygote bool `json:"zygote,omitempty"`

	// TrustNode says that an import of this image set ImportOptions.TrustNode.
	TrustNode bool `json:"trustNode,omitempty"`
}

// CanRun returns nil if the image's Node can run programs. Otherwise the error wraps
// ErrUnsupported: the image has no Node, or one that is too old for gaol's guest code.
func (i *Image) CanRun() error {
	if i.Node == "" {
		return fmt.Errorf("the image has no Node, only commands work in it: %w", ErrUnsupported)
	}
	major, _, _ := strings.Cut(i.Node, ".")
	if n, err := strconv.Atoi(major); err == nil && n < minNode {
		return fmt.Errorf("the image has Node %s, and runs need %d or newer: %w", i.Node, minNode, ErrUnsupported)
	}
	return nil
}

// CanFork returns nil if the image's Node may be the zygote, which runs outside all jails.
// Otherwise the error wraps ErrUnsupported and names the reason.
func (i *Image) CanFork() error {
	m := i.Imported
	switch {
	case m == nil:
		return nil
	case i.Node == "":
		return fmt.Errorf("the image has no Node: %w", ErrUnsupported)
	case m.Libc != "glibc":
		return fmt.Errorf("the image's Node is linked to %s, and the zygote works with glibc: %w", m.Libc, ErrUnsupported)
	case !m.Zygote:
		return fmt.Errorf("the image's glibc is older than the one that the zygote was compiled with: %w", ErrUnsupported)
	case !m.TrustNode:
		return fmt.Errorf("the image is not trusted to run outside of jails, as the zygote does (see ImportOptions.TrustNode): %w", ErrUnsupported)
	}
	return nil
}

// maxPathVariable bounds PATH in bytes.
const maxPathVariable = 4096

// Path returns the PATH of an imported image's config. It returns "" unless that is a list
// of absolute, clean paths.
func (i *Image) Path() string {
	if i.Imported == nil {
		return ""
	}
	return validPath(i.Imported.Config.Env)
}

func validPath(env []string) string {
	value := variable(env, "PATH")
	if value == "" || len(value) > maxPathVariable {
		return ""
	}
	for _, dir := range strings.Split(value, ":") {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return ""
		}
	}
	return value
}

// variable returns the last value of an environment variable, which is the one that counts.
func variable(env []string, name string) (value string) {
	for _, v := range env {
		if k, text, found := strings.Cut(v, "="); found && k == name {
			value = text
		}
	}
	return value
}
