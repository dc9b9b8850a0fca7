package jail

import (
	"os"

	"gaol/jail/landlock"
)

// Ruleset makes a Landlock ruleset for processes of the jail, see Command.Ruleset. Its
// rules grant what is in the tree now: a folder that is made later in the place of
// another has none of its grants. The caller closes the file. Errors are those of
// [landlock.Ruleset.Make].
func (j *Jail) Ruleset(r *landlock.Ruleset) (*os.File, error) {
	root, err := j.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return r.Make(root)
}
