package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// npm gives up without a registry long before the run's timeout, and the denials show why.
func TestNPMWithoutNetwork(t *testing.T) {
	for name, permissions := range harness.SomeByName(map[string]policy.Permissions{"denied": {Network: policy.Scope{Default: policy.Deny}}, "localhost": {}}) {
		rt := harness.Create(t, runtime.Options{Permissions: permissions})
		for _, code := range []string{"", `import { spawnSync } from 'node:child_process'; process.exit(spawnSync('npm', ['install', 'lodash'], { stdio: 'inherit' }).status)`} {
			o := runtime.RunOptions{Timeout: time.Minute}
			res, err := rt.Command(t.Context(), "npm", []string{"install", "lodash"}, o)
			if code != "" {
				res, err = rt.Run(t.Context(), code, o)
			}
			if err != nil {
				t.Fatal(err)
			}
			if res.Cause != "" || res.ExitCode != 1 || !strings.Contains(string(res.Stderr), "EAI_AGAIN") {
				t.Errorf("%s: exit code %d, cause %q, after %v: %s", name, res.ExitCode, res.Cause, res.Duration, res.Stderr)
			}
			want := runtime.Denial{Scope: "network", Operation: "dns", Target: "dns://registry.npmjs.org", Rule: "network.default", Count: 1, Source: runtime.SourceStderr}
			if !slices.Contains(res.Denials, want) {
				t.Errorf("%s: denials %+v, want %+v", name, res.Denials, want)
			}
		}
	}
}
