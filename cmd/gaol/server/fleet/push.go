package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

// Files are the files that all machines of a fleet use instead of their own, by gaol fleet push. An empty one is none.
type Files struct {
	Config []byte `json:"config"` // the settings
	Tokens []byte `json:"tokens"`
}

const (
	pushedConfig = "pushed.json"
	pushedTokens = "pushed.tokens"
	filesKey     = "files" // in the engine
	maxFiles     = 4 << 20
)

// Pushed returns the paths of the files that a machine has got, or else the given ones.
func Pushed(dir, config, tokens string) (newConfig, newTokens string) {
	for name, path := range map[string]*string{pushedConfig: &config, pushedTokens: &tokens} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			*path = filepath.Join(dir, name)
		}
	}
	return config, tokens
}

// write writes the files to a folder, and removes empty ones. It reports whether any file has changed.
func (files *Files) write(dir string) (changed bool, err error) {
	for name, text := range map[string][]byte{pushedConfig: files.Config, pushedTokens: files.Tokens} {
		path := filepath.Join(dir, name)
		old, missing := os.ReadFile(path)
		switch {
		case len(text) == 0 && missing == nil:
			err = errors.Join(err, os.Remove(path))
		case len(text) == 0, missing == nil && bytes.Equal(old, text):
			continue
		default:
			err = errors.Join(err, identity.WriteFile(dir, name, text))
		}
		changed = true
	}
	return changed, err
}

// check returns why a machine could not use the files.
func (files *Files) check() error {
	dir, err := os.MkdirTemp("", "gaol-push-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := files.write(dir); err != nil {
		return err
	}
	config, tokens := Pushed(dir, "", "")
	if _, err = settings.Read(config, settings.Overrides{}); err == nil && tokens != "" {
		_, err = tenant.ReadTokens(tokens)
	}
	if err != nil {
		return &service.Error{Code: service.Invalid, Err: err}
	}
	return nil
}

// push gives all machines the same files.
func (f *Fleet) push(w http.ResponseWriter, r *http.Request) {
	var files Files
	err := receive(w, r, maxFiles, &files)
	if err == nil {
		err = files.check()
	}
	if err == nil {
		var text []byte
		if text, err = json.Marshal(files); err == nil {
			err = f.client.Put(r.Context(), engine.Config, filesKey, text)
		}
	}
	respond(w, struct{}{}, err)
}

// applyFiles keeps the files that were pushed.
func (f *Fleet) applyFiles(c engine.Change) {
	var files Files
	if c.Key != filesKey || c.Value == nil || json.Unmarshal(c.Value, &files) != nil {
		return
	}
	changed, err := files.write(f.Dir)
	if err != nil {
		f.Log.Error("write the files that were pushed", "err", err)
	}
	if changed && f.Reload != nil {
		f.Reload()
	}
}
