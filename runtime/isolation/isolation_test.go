package isolation

import (
	"errors"
	"slices"
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
		{"vm", Zygote, []string{"isolation vm", "there is no such isolation", "use isolation native"}},
		{Native, "Options.Magic", []string{"does not list it"}},
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
	weak := newIndex([]Group{{"", []Row{
		row("fs.read, fs.write", by("a"), same),
		row("fs.chmod", by("a"), no("it has no owners")),
	}}})
	deny := func(op policy.Operation) policy.Permissions {
		return policy.Permissions{
			FS:      policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Operations: []policy.Operation{op}, Paths: []string{"/a"}}}},
			Network: policy.Scope{Default: policy.Allow},
		}
	}
	if err := errors.Join(weak.checkPermissions(OCI, deny("write")), weak.checkPermissions(Native, deny("chmod"))); err != nil {
		t.Error(err)
	}
	err := weak.checkPermissions(OCI, deny("chmod"))
	rule, ok := errors.AsType[*policy.RuleError](err)
	if !ok || rule.Place != "fs.rules[0]" || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "fs.chmod: it has no owners; use isolation native") {
		t.Errorf("%v", err)
	}
	if err := CheckPermissions(OCI, policy.Strict()); err != nil {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	all := policy.Operations(policy.FS)
	if texts := Explain(Native, policy.FS, all); texts != nil {
		t.Errorf("native: %q", texts)
	}
	if texts := Explain(OCI, policy.FS, all); !slices.Equal(texts, []string{inContainer}) {
		t.Errorf("oci: %q", texts)
	}
	if texts := Explain(OCI, policy.Process, policy.Operations(policy.Process)); len(texts) != 2 {
		t.Errorf("oci: %q", texts)
	}
	if texts := Explain(OCI, policy.Env, policy.Operations(policy.Env)); texts != nil {
		t.Errorf("the same in both: %q", texts)
	}
}
