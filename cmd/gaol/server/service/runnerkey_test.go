package service

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/runtime/snippets"
)

// A request that names another adapter than the settings is not checked by the settings' lint rules.
func TestKeyRules(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config": fmt.Sprintf(`{"snippets": {"adapter": "directive", "lintRules": "%s/rules.json"}}`, dir), "rules.json": `{"names": {"alert": "no window"}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := settings.Read(filepath.Join(dir, "config"), settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	directive := newRunnerKey(set, "a", presetDefault, snippets.Directive)
	if directive.rules == nil || directive.rules.Names["alert"] == "" || directive != newRunnerKey(set, "a", presetDefault, snippets.Directive) {
		t.Errorf("%+v", directive.rules)
	}
	if none := newRunnerKey(set, "a", presetDefault, snippets.None); none.rules != nil {
		t.Errorf("%+v", none.rules)
	}
}
