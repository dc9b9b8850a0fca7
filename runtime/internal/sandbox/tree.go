package sandbox

import (
	"slices"
	"strings"

	"gaol/jail"
	"gaol/jail/gateway"
	"gaol/policy"
)

// addPlan adds the mounts that the plan requires to the file tree: hidden, read-only and noexec
// paths, and paths to create in advance.
func (s *Spec) addPlan() {
	p, t := s.Plan, &s.Tree
	own, kept := grantedPlaces(p, s.World)
	t.Make, t.Keep = append(places(own), t.Make...), places(kept)
	t.Sealed, t.Hide, t.Show, t.Pinned, t.NotOwn = p.Sealed, places(p.Hide), places(p.Show), p.Pinned, notOwned(p, s.Permissions)
	t.ReadOnly, t.NoExec = append(places(p.ReadOnly), t.ReadOnly...), places(p.NoExec)
	if p.Spawn.Only != nil {
		// A dynamic loader can be asked to load any program that it may map as code, so
		// nothing but the listed programs and the loaders may be mapped so.
		t.NoExec = append(t.NoExec, jail.Place{Path: "/", Tree: true})
		t.Exec = places(p.Spawn.Only)
		for _, n := range s.World.Needed {
			if n.Loader {
				t.Exec = append(t.Exec, jail.Place{Path: n.Path, Tree: n.Tree})
			}
		}
	}
	if p.Net.Egress != nil {
		resolvConf := "nameserver " + gateway.Resolver.String() + "\n"
		t.Layer = append(slices.Clip(t.Layer), jail.File{Path: "/etc/resolv.conf", Mode: 0o644, Data: []byte(resolvConf)})
	}
}

// notOwned returns a function that reports the paths that must not belong to the guest:
// those where chmod is denied and only the files' owner enforces it.
func notOwned(p *policy.Plan, permissions policy.Permissions) func(string) bool {
	if p.NoMetadata {
		return nil
	}
	return func(at string) bool {
		contains := func(q policy.Place) bool { return at == q.Path || q.Tree && strings.HasPrefix(at, q.Path+"/") }
		return !permissions.Decide(policy.FS, "chmod", at).Allowed && !slices.ContainsFunc(p.ReadOnly, contains) && !p.Hides(policy.Place{Path: at})
	}
}

// grantedPlaces returns the places below the guest's own folders in which a plan grants an
// operation: own are those where the guest may create files, kept are the others. Both must exist before the ruleset is made, because Landlock grants rights on files that
// exist, and the guest may be unable to create their parents.
func grantedPlaces(p *policy.Plan, w policy.World) (own, kept []policy.Place) {
	isInside := func(at policy.Place) bool {
		return slices.ContainsFunc(slices.Concat(w.Own, w.Shared), func(dir string) bool { return strings.HasPrefix(at.Path, dir+"/") })
	}
	for _, g := range p.Grants {
		switch {
		case !isInside(g.Place):
		case slices.ContainsFunc(g.Operations, Creates):
			own = append(own, g.Place)
		case g.Place.Tree:
			kept = append(kept, g.Place)
		}
	}
	for _, at := range p.Show {
		if !p.Restricts && isInside(at) { // without Landlock everything is allowed in it
			own = append(own, at)
		}
	}
	return own, kept
}

func places(list []policy.Place) (out []jail.Place) {
	for _, p := range list {
		out = append(out, jail.Place(p))
	}
	return out
}

// Creates reports whether an operation can create a file.
func Creates(op policy.Operation) bool {
	return op == "write" || op == "create_dir" || op == "symlink"
}
