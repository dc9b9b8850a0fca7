package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// node is a place that some rule, need or folder of the world names. What holds
// for it holds for all below that no deeper node speaks of.
type node struct {
	place  Place
	parent int // the nearest node around it; -1 for "/"
}

// probe is a path that stands for all of the place: no pattern has a NUL, so no
// deeper one matches it.
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
		return cmp.Or(len(split(a.Path))-len(split(b.Path)), strings.Compare(a.Path, b.Path), treeFirst(a, b))
	})
	places = slices.Compact(places)
	nodes := make([]node, len(places))
	for i, p := range places {
		nodes[i] = node{place: p, parent: enclosing(nodes[:i], p)}
	}
	return nodes
}

func treeFirst(a, b Place) int {
	switch {
	case a.Tree == b.Tree:
		return 0
	case a.Tree:
		return -1
	}
	return 1
}

// around returns the deepest of the nodes that p lies in, or -1.
func enclosing(nodes []node, p Place) int {
	for i, n := range slices.Backward(nodes) {
		if n.place.Tree && n.place.contains(p) {
			return i
		}
	}
	return -1
}

// trees are the folders as places.
func folderPlaces(folders ...[]string) []Place {
	var places []Place
	for _, f := range slices.Concat(folders...) {
		places = append(places, Place{Path: f, Tree: true})
	}
	return places
}

// placesOf are the places that rules of fs or childProcess name.
func placesOf(info *scopeInfo, s Scope) []Place {
	var places []Place
	for _, e := range entriesOf(info, s) {
		if p, ok := placeOf(e.text); ok {
			places = append(places, p)
		}
	}
	return places
}
