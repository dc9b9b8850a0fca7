package isolation

import (
	"errors"
	"strings"
	"testing"

	"gaol/policy"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name    Name
		feature Feature
		says    []string // in the error; nil: supported
	}{
		{Native, Zygote, nil},
		{Native, Park, nil},
		{Native, OCIRuntime, []string{"isolation native does not support Options.OCI", "use isolation oci"}},
		{OCI, OCIRuntime, nil},
		{OCI, Zygote, []string{"isolation oci does not support LauncherZygote", "with a new Node", "use isolation native"}},
		{OCI, Park, []string{"PoolOptions.Park", "use isolation native"}},
		{OCI, Permission(policy.FS, "chmod"), nil},
	} {
		err := Check(tt.name, tt.feature)
		if (err == nil) != (tt.says == nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s, %s: %v", tt.name, tt.feature, err)
		}
		for _, want := range tt.says {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
	}
}

// An isolation that lacks an operation refuses the rules that restrict it, and no others.
func TestCheckPermissions(t *testing.T) {
	if err := CheckPermissions(OCI, policy.Strict()); err != nil {
		t.Error(err)
	}
	missing[OCI][Permission(policy.FS, "chmod")] = "it has no owners"
	defer delete(missing[OCI], Permission(policy.FS, "chmod"))
	deny := func(op policy.Operation) policy.Permissions {
		return policy.Permissions{
			FS:      policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Operations: []policy.Operation{op}, Paths: []string{"/a"}}}},
			Network: policy.Scope{Default: policy.Allow},
		}
	}
	if err := errors.Join(CheckPermissions(OCI, deny("write")), CheckPermissions(Native, deny("chmod"))); err != nil {
		t.Error(err)
	}
	err := CheckPermissions(OCI, deny("chmod"))
	rule, ok := errors.AsType[*policy.RuleError](err)
	if !ok || rule.Place != "fs.rules[0]" || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "fs.chmod: it has no owners; use isolation native") {
		t.Errorf("%v", err)
	}
}
