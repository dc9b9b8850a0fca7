package permissions

import (
	"path"
	"slices"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
)

// expectation compares the results of tries with the permissions. outer is nil for a
// runtime's own permissions.
type expectation struct {
	p     policy.Permissions
	outer *policy.Permissions
	free  []string // the codes if everything is allowed
}

func (j expectation) allows(y try) bool {
	return !slices.ContainsFunc(y.needs, func(n need) bool {
		isPassed := n.scope == policy.Env && j.outer != nil // both must allow it
		return !j.p.Decide(n.scope, n.op, n.resource).Allowed || isPassed && !j.outer.PassesEnv(n.resource)
	})
}

// mismatch describes the difference, or returns "".
func (j expectation) mismatch(y try, i int, codes []string) string {
	if y.after >= 0 && codes[y.after] != "" {
		return ""
	}
	code, allowed := codes[i], j.allows(y)
	switch {
	case code == "" && !allowed && !j.isExempt(y):
		return "done, though denied"
	case code != "" && allowed && j.free[i] == "" && !j.mayRefuse(y, code):
		return code + ", though allowed"
	case code != "" && !allowed && !slices.Contains(refusals, code):
		return code + ", which is no refusal"
	}
	return ""
}

var refusals = strings.Fields("EACCES EPERM EROFS EBUSY EXDEV ENOENT ENOTDIR ESRCH placeholder")

// isExempt reports whether something works though it is denied, as package policy documents.
func (j expectation) isExempt(y try) bool {
	if y.Kind == "watch" { // no other run changes anything there
		return fixed(y.Path)
	}
	return j.outer != nil && !slices.ContainsFunc(y.needs, func(n need) bool { // a run sees what its runtime sees
		isSight := n.op == "stat" || n.op == "readlink"
		return !j.p.Decide(n.scope, n.op, n.resource).Allowed && !(isSight && j.outer.Decide(n.scope, n.op, n.resource).Allowed)
	})
}

// fixed reports whether nothing at a path belongs to the guest.
func fixed(at string) bool {
	var in triedArea
	for _, a := range triedAreas {
		if inside(a.at, at) && len(a.at) > len(in.at) {
			in = a
		}
	}
	return in.mounted && in.access == runtime.ReadOnly
}

func inside(dir, at string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }

// mayRefuse reports whether something is refused though it is allowed, as package policy
// documents.
func (j expectation) mayRefuse(y try, code string) bool {
	switch {
	case y.Kind == "watch": // refused everywhere, because of some other folder
		return code == "EACCES"
	case code == "EBUSY", code == "EPERM" && path.Dir(y.Path) == "/tmp": // mounts, and folders that lead to them, cannot be moved
		return y.Kind == "rename" && j.leadsTo(func(at string) bool { return at == y.Path })
	case code == "EPERM" && y.Kind == "link": // of a file that belongs to another user
		return !j.p.Decide(policy.FS, "chmod", y.Path).Allowed
	case code == "EXDEV":
		return (y.Kind == "rename" || y.Kind == "link") && j.apart(y.Path, y.To)
	}
	return false
}

// apart reports whether a mount may be between two names, or one of them has more
// permissions.
func (j expectation) apart(from, to string) bool {
	if path.Dir(from) != path.Dir(to) && j.allowedAt(from) != j.allowedAt(to) {
		return true
	}
	return j.leadsTo(func(at string) bool { return inside(at, from) != inside(at, to) })
}

// leadsTo reports whether the condition holds for a rule's path or for a folder that leads to
// it.
func (j expectation) leadsTo(is func(string) bool) bool {
	p := j.p
	if j.outer != nil {
		p = *j.outer
	}
	for _, r := range slices.Concat(p.FS.Rules, p.ChildProcess.Rules) {
		for _, at := range slices.Concat(r.Paths, r.Patterns) {
			for at = strings.TrimSuffix(at, "/**"); at != "/" && at != ""; at = path.Dir(at) {
				if is(at) {
					return true
				}
			}
		}
	}
	return false
}

// allowedAt are the operations of fs that are allowed at a path.
func (j expectation) allowedAt(at string) (all [12]bool) {
	for i, op := range append(slices.Clone(using), altering...) {
		all[i] = j.p.Decide(policy.FS, op, at).Allowed
	}
	return all
}

// check reports wrong outcomes, at most a few cases of each runtime.
func (j expectation) check(t testing.TB, what string, l tryList, codes []string) {
	t.Helper()
	count := 0
	for i, y := range l {
		if wrong := j.mismatch(y, i, codes); wrong != "" {
			if count++; count <= 10 {
				t.Errorf("%s: %s: %s", what, y, wrong)
			}
		}
	}
	if count > 0 {
		t.Errorf("%s: %d differences\npermissions %s", what, count, text(t, j.p))
		if j.outer != nil {
			t.Errorf("the runtime's %s", text(t, *j.outer))
		}
	}
}
