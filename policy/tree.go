package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// node is a place that a rule, a need or a folder of the world names. Its permissions
// apply to everything below it that no deeper node names.
type node struct {
	place  Place
	parent int // index of the nearest enclosing node; -1 for "/"
}

// sample returns a path that represents the whole place: patterns cannot contain a NUL, so
// that no deeper pattern matches it.
func (p Place) sample() string {
	if !p.Tree {
		return p.Path
	}
	return path.Join(p.Path, "\x00")
}

// newTree returns the nodes of the places, "/" first, each after its parent.
func newTree(places []Place) []node {
	places = append(slices.Clone(places), Place{Path: "/", Tree: true})
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(len(split(a.Path))-len(split(b.Path)), strings.Compare(a.Path, b.Path),
			cmp.Compare(len(b.String()), len(a.String()))) // P/** before P
	})
	places = slices.Compact(places)
	nodes := make([]node, len(places))
	for i, p := range places {
		nodes[i] = node{place: p, parent: enclosing(nodes[:i], p)}
	}
	return nodes
}

func (n node) at() Place { return n.place }

// enclosing returns the index of the deepest node that contains p, or -1.
func enclosing[N interface{ at() Place }](nodes []N, p Place) int {
	for i, n := range slices.Backward(nodes) {
		if n.at().Tree && n.at().contains(p) {
			return i
		}
	}
	return -1
}

// folderPlaces returns the folders as places.
func folderPlaces(folders ...[]string) []Place {
	var places []Place
	for _, f := range slices.Concat(folders...) {
		places = append(places, Place{Path: f, Tree: true})
	}
	return places
}

// places returns the places that rules of fs or childProcess name.
func (p Permissions) places(scope string) []Place {
	var places []Place
	for _, e := range p.entries(scope) {
		if place, ok := placeOf(e.text); ok {
			places = append(places, place)
		}
	}
	return places
}
