package policy

import (
	"slices"
	"strings"
)

// opSet is a set of operations of fs, a bit for each row of the table.
type opSet uint16

var (
	sightSet    = setOf(sightOps...)
	writingSet  = setOf(writing...)
	executeSet  = setOf("execute")
	chmodSet    = setOf("chmod")
	renameSet   = setOf("rename")
	listSet     = setOf("readdir")
	moveSet     = setOf("rm", "write")
	makeSet     = setOf("write", "create_dir", "symlink")
	landlockSet = setOf(scopeNamed(FS).operations(Rule{})...) &^ sightSet &^ chmodSet

	// folderSet are operations whose right Landlock looks for on the folder.
	folderSet = setOf("readdir", "create_dir", "rm", "rename", "symlink")
)

func setOf(ops ...Operation) opSet {
	var set opSet
	for i, o := range scopeNamed(FS).ops {
		if slices.Contains(ops, o.name) {
			set |= 1 << i
		}
	}
	return set
}

func (s opSet) list() []Operation {
	var ops []Operation
	for i, o := range scopeNamed(FS).ops {
		if s&(1<<i) != 0 {
			ops = append(ops, o.name)
		}
	}
	return ops
}

// String lists the operations for people.
func (s opSet) String() string { return joinOps(s.list()) }

func joinOps(ops []Operation) string {
	words := make([]string, len(ops))
	for i, o := range ops {
		words[i] = string(o)
	}
	return strings.Join(words, ", ")
}
