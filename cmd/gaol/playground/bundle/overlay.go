package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gaol/cmd/gaol/playground"
)

// overlay is the JSON of go build's flag -overlay.
type overlay struct {
	Replace map[string]string
}

// addToOverlay adds the files of the folder dir, as files of the source folder target, to an overlay
// file that may exist.
func addToOverlay(path, target, dir string) error {
	var o overlay
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("overlay %s: %w", path, err)
	}
	if o.Replace == nil {
		o.Replace = map[string]string{}
	}
	for _, name := range playground.Files {
		o.Replace[filepath.Join(target, name)] = filepath.Join(dir, name)
	}
	if text, err = json.Marshal(o); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
