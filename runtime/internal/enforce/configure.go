package enforce

import (
	"slices"
	"strings"

	"gaol/policy"
	"gaol/runtime/internal/sandbox"
)

// Configure sets the parts of a sandbox as a plan requires: the places that are hidden,
// read-only or not executable, and those that must exist in advance; the network and /proc.
func Configure(spec *sandbox.Spec, p *policy.Plan, permissions policy.Permissions, w policy.World) {
	spec.Hide, spec.Show = places(p.Hide), places(p.Show)
	spec.ReadOnly, spec.NoExec = places(p.ReadOnly), places(p.NoExec)
	spec.Sealed, spec.Pinned = p.Sealed, p.Pinned
	spec.Make, spec.Keep = grantedPlaces(p, w)
	spec.NotOwn = notOwned(p, permissions)
	spec.Net, spec.HideProcesses = p.Net, p.NoInspect
	if p.Spawn.Only != nil {
		// A dynamic loader can be asked to load any program that it may map as code, so
		// nothing but the listed programs and the loaders may be mapped so.
		spec.NoExec = append(spec.NoExec, sandbox.Place{Path: "/", Tree: true})
		spec.Exec = places(p.Spawn.Only)
		for _, n := range w.Needed {
			if n.Loader {
				spec.Exec = append(spec.Exec, sandbox.Place{Path: n.Path, Tree: n.Tree})
			}
		}
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
func grantedPlaces(p *policy.Plan, w policy.World) (own, kept []sandbox.Place) {
	isInside := func(at policy.Place) bool {
		return slices.ContainsFunc(slices.Concat(w.Own, w.Shared), func(dir string) bool { return strings.HasPrefix(at.Path, dir+"/") })
	}
	for _, g := range p.Grants {
		switch {
		case !isInside(g.Place):
		case slices.ContainsFunc(g.Operations, creates):
			own = append(own, sandbox.Place(g.Place))
		case g.Place.Tree:
			kept = append(kept, sandbox.Place(g.Place))
		}
	}
	for _, at := range p.Show {
		if !p.Restricts && isInside(at) { // without Landlock everything is allowed in it
			own = append(own, sandbox.Place(at))
		}
	}
	return own, kept
}

func creates(op policy.Operation) bool {
	return op == "write" || op == "create_dir" || op == "symlink"
}

// Changes reports whether a read-only mount refuses the operation.
func Changes(op policy.Operation) bool {
	return creates(op) || op == "rm" || op == "rename" || op == "truncate"
}

func places(list []policy.Place) []sandbox.Place {
	var out []sandbox.Place
	for _, p := range list {
		out = append(out, sandbox.Place(p))
	}
	return out
}
