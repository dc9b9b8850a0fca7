package native

import (
	"slices"
	"strings"

	"gaol/jail"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
)

// tree returns the file tree of a jail, with the mounts that the plan requires: hidden, read-only and noexec
// paths, and paths to create in advance.
func tree(s *sandbox.Spec) jail.Tree {
	p := s.Plan
	t := jail.Tree{
		Image: s.Image, Layer: s.Layer, Dirs: s.Dirs, Sealed: p.Sealed, Mounts: s.Mounts, Files: s.Files,
		Hide: places(p.Hide), Show: places(p.Show), Pinned: p.Pinned, NotOwn: notOwned(p, s.Permissions),
		ReadOnly: places(p.ReadOnly, s.ReadOnly), Writable: places(s.Writable), NoExec: places(p.NoExec),
		Disk: s.Disk, Inodes: s.Inodes, Commands: s.Commands,
	}
	own, kept := grantedPlaces(p, s.World)
	t.Make, t.Keep = places(own, s.Make), places(kept)
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
		t.Layer = append(slices.Clip(t.Layer), jail.File{Path: "/etc/resolv.conf", Mode: 0o644, Data: resolvConf})
	}
	return t
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
		case slices.ContainsFunc(g.Operations, sandbox.Creates):
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

func places(lists ...[]policy.Place) (out []jail.Place) {
	for _, list := range lists {
		for _, p := range list {
			out = append(out, jail.Place(p))
		}
	}
	return out
}
