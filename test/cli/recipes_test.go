package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// reportUse makes a script report when it ends how much of the sandbox's disk is in use.
const reportUse = `
use() { df -P$1 . | awk 'END { print $3 }'; }
trap 'echo "disk: $(use k) KiB, $(use i) files" >&2' EXIT
`

// recipe runs a shell script by gaol run with flags. The script must succeed, and its output must match the pattern want.
// It may take long, because its time depends on the machine.
func recipe(t *testing.T, script, want string, flags ...string) {
	t.Helper()
	args := append([]string{"run", "--json", "--timeout", "30m"}, flags...)
	out, stderr, err := output(harness.Gaol(t), append(args, "--command", "--", "bash", "-ec", reportUse+script)...)
	var res struct {
		Stdout, Stderr, Cause string
		DurationMs            float64
		Usage                 struct{ PeakMemoryBytes, Pids int64 }
		Denials               []runtime.Denial
	}
	if decoding := json.Unmarshal([]byte(out), &res); decoding != nil {
		t.Fatalf("%v, %v: %s", err, decoding, stderr)
	}
	use := res.Stderr[max(strings.LastIndex(res.Stderr, "disk: "), 0):]
	t.Logf("%.1f s, memory with page cache: %d MiB, %d processes, %s", res.DurationMs/1000, res.Usage.PeakMemoryBytes>>20, res.Usage.Pids, use)
	if err != nil || !regexp.MustCompile(want).MatchString(res.Stdout) {
		t.Errorf("%v, cause %q, denials %+v; want output that matches %q\n%s%s", err, res.Cause, res.Denials, want, res.Stdout, res.Stderr)
	}
}

// output returns the output of a command.
func output(name string, args ...string) (stdout, stderr string, err error) {
	cmd := exec.Command(name, args...)
	var out, diagnostics strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	err = cmd.Run()
	return out.String(), diagnostics.String(), err
}

// imageWith returns the flags for an image with packages, and builds it if it is missing.
func imageWith(t *testing.T, packages string) []string {
	t.Helper()
	id, stderr, err := output(harness.Gaol(t), "image", "build", "--if-missing", "--with", packages)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return []string{"--image", strings.TrimSpace(id)}
}

// presetNPM returns --preset npm, and the flags that npm in the sandbox also needs on this machine: the URL of a registry that is not the
// default one, the file of an authority, and what gaol run advises if the registry has a private address.
func presetNPM(t *testing.T) []string {
	t.Helper()
	flags := []string{"--preset", "npm"}
	registries, err := rootfs.NPMRegistries("")
	if err != nil {
		t.Fatal(err)
	}
	if r := registries["registry"]; r.From != "npm" {
		flags = append(flags, "--env", "npm_config_registry="+r.URL)
	}
	if file := os.Getenv("NODE_EXTRA_CA_CERTS"); file != "" {
		flags = append(flags, "--file", "/etc/authority.pem="+file, "--env", "NODE_EXTRA_CA_CERTS=/etc/authority.pem")
	}
	_, stderr, err := output(harness.Gaol(t), append(append([]string{"run"}, flags...), "--command", "--", "npm", "ping")...)
	if err == nil {
		return flags
	}
	advice := regexp.MustCompile(`resolves to .*; allow with (--allow-net) (\S+)`).FindAllStringSubmatch(stderr, -1)
	if advice == nil {
		t.Fatalf("npm cannot reach its registry: %v\n%s", err, stderr)
	}
	for _, a := range advice {
		flags = append(flags, a[1], a[2])
	}
	return flags
}

// npm installs frameworks with --preset npm, and without a flag for a limit.
func TestInstallFrameworks(t *testing.T) {
	tier.Packages(t)
	flags := presetNPM(t)
	for _, tc := range []struct{ name, script, want string }{
		{"next", `
			npm install next react react-dom
			npx next --version`, `Next\.js v\d+`},
		{"vite", `
			npm install vite @vitejs/plugin-react react react-dom
			echo 'import react from "@vitejs/plugin-react"; export default { plugins: [react()] }' >vite.config.mjs
			echo '<div id="root"></div><script type="module" src="/main.jsx"></script>' >index.html
			echo 'import { createRoot } from "react-dom/client"; createRoot(document.getElementById("root")).render(<b>built</b>)' >main.jsx
			npx vite build
			grep -c built dist/assets/*.js`, `\n[1-9]\d*\n$`},
		{"vitest", `
			npm install vitest
			echo 'import { expect, test } from "vitest"; test("sum", () => expect(1 + 2).toBe(3))' >sum.test.mjs
			npx vitest run --no-color`, `Tests +1 passed`},
		{"playwright-core", `
			npm install playwright-core
			npx playwright-core --version`, `Version \d+`},
		{"typescript", `
			npm install typescript
			echo 'export const sum = (a: number, b: number): number => a + b' >sum.mts
			npx tsc sum.mts
			node -p 'require("./sum.mjs").sum(40, 2)'
			npx tsc --version`, `\n42\nVersion \d+`},
	} {
		t.Run(tc.name, func(t *testing.T) { recipe(t, tc.script, tc.want, flags...) })
	}
}

// node-gyp builds an addon: the preset denies the host from which its script would download a binary.
func TestBuildAddon(t *testing.T) {
	tier.Packages(t)
	recipe(t, `
		npm install better-sqlite3@12
		[ -e node_modules/better-sqlite3/build/Release/obj.target ]
		node -p 'require("better-sqlite3")(":memory:").prepare("select 40 + 2 as n").get()'`, `\{ n: 42 \}\n$`,
		append(presetNPM(t), imageWith(t, "build")...)...)
}

// Playwright takes a screenshot with the image's Chromium.
func TestPlaywright(t *testing.T) {
	tier.Packages(t)
	recipe(t, `
		npm install playwright-core
		cat >shot.mjs <<-'END'
			import { chromium } from 'playwright-core';
			const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
			const page = await browser.newPage();
			await page.setContent('<h1>&#x1f600;');
			console.log((await page.screenshot()).subarray(1, 4).toString(), await page.textContent('h1'));
			await browser.close();
		END
		node shot.mjs`, `PNG 😀\n$`, append(append(presetNPM(t), imageWith(t, "browser")...), "--memory", "1g", "--pids", "256")...)
}

// A script runs with Debian's pandas, and with pandas that pip installs from a folder of wheels. The wheels are made of Debian's
// packages, so that the test needs no registry of Python packages.
func TestDataScript(t *testing.T) {
	tier.Packages(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"degrees.csv": "city,month,degrees\nOslo,1,-4\nOslo,7,18\nRome,1,8\nRome,7,26\n",
		"report.py": "import pandas\nprint(pandas.__file__)\n" +
			"print(pandas.read_csv('/data/degrees.csv').groupby('city').degrees.agg(['mean', 'max']).to_json())\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const want = `/pandas/__init__\.py\n{"mean":{"Oslo":7\.0,"Rome":17\.0},"max":{"Oslo":18,"Rome":26}}\n$`
	recipe(t, `
		python3 /wheels.py /data
		python3 /data/report.py`, `^/usr/lib/python3/dist-packages`+want,
		append(imageWith(t, "python,python3-pandas"), "--mount", dir+":/data:rw", "--file", "/wheels.py=testdata/wheels.py")...)
	recipe(t, `
		python3 -m venv v
		v/bin/pip install --no-index --find-links /data pandas
		v/bin/python /data/report.py`, `\n/workspace/v/lib/python3\.\d+/site-packages`+want,
		append(imageWith(t, "python,libblas3,liblapack3"), "--mount", dir+":/data", "--disk", "1g")...)
}
