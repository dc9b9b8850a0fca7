package programs

import (
	"context"
	"debug/elf"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// sourcesFile has the hash of the sources. It is written last: a folder without it counts as empty.
const sourcesFile = "sources"

// folder contains a README, and the files that the flag -overlay of go build adds.
//
//go:embed prebuilt
var folder embed.FS

// embedded returns the programs that are embedded in this binary, nil if there are none.
func embedded() fs.FS {
	files, err := fs.Sub(folder, "prebuilt")
	if err != nil {
		return nil
	}
	if _, err := fs.Stat(files, sourcesFile); err != nil {
		return nil
	}
	return files
}

// Check returns ErrOutdated if the prebuilt programs were made of other sources.
func (m *Maker) Check() error {
	text, err := fs.ReadFile(m.Prebuilt, sourcesFile)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOutdated, err)
	}
	if string(text) != m.SourceHash() {
		return ErrOutdated
	}
	return nil
}

// Prebuild makes all programs in the folder dir, which it replaces, with the hash of the sources. It writes a
// file beside the folder, dir.json, for the flag -overlay of go build, which embeds them as
// files of the source folder embedIn.
func (m *Maker) Prebuild(ctx context.Context, dir, embedIn string) error {
	overlay := dir + ".json"
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(overlay), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for _, name := range all {
		out := filepath.Join(dir, name)
		if err := m.Make(ctx, name, out); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := m.checkMachine(out); err != nil {
			return err
		}
	}
	replace := map[string]string{}
	for _, name := range append([]string{sourcesFile}, all...) {
		replace[filepath.Join(embedIn, name)] = filepath.Join(dir, name)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, sourcesFile), []byte(m.SourceHash()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(overlay, text, 0o644)
}

// machines are the processors that gaol supports.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkMachine returns an error unless the program is for the Maker's processor.
func (m *Maker) checkMachine(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	if want, known := machines[m.arch()]; !known || f.Machine != want {
		return fmt.Errorf("%s is for %s, not for %s", path, f.Machine, m.arch())
	}
	return nil
}
