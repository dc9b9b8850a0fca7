package host

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"os"
	"testing"
	"time"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/rootfs/debian"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// withPackages returns a runtime of an image with a preset. It builds the image if it is missing.
func withPackages(t *testing.T, preset string, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	store, err := rootfs.Open(os.Getenv(harness.StoreVar))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	image, err := store.Ensure(t.Context(), "", rootfs.BuildOptions{With: []string{preset}, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d MB, in %.1f s", preset, image.Size/1e6, time.Since(began).Seconds())
	for _, p := range debian.Presets {
		if p.Name == preset && math.Abs(float64(image.Size)/1e6-float64(p.Size)) > 0.1*float64(p.Size) {
			t.Errorf("the image with %s has %d MB, and package debian says %d", preset, image.Size/1e6, p.Size)
		}
	}
	o.Image = image.ID
	return harness.Create(t, o)
}

// bash runs a script, which must succeed, and returns its output.
func bash(t *testing.T, rt *runtime.NodeRuntime, script string) []byte {
	t.Helper()
	began := time.Now()
	res, err := rt.Command(t.Context(), "bash", []string{"-ec", script}, runtime.RunOptions{Timeout: 5 * time.Minute})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%v; %s, exit code %d, stdout %s, stderr %s", err, res.Cause, res.ExitCode, res.Stdout, res.Stderr)
	}
	t.Logf("%.1f s, peak %d MB, %d processes", time.Since(began).Seconds(), res.Usage.PeakMemory>>20, res.Usage.PeakPids)
	return res.Stdout
}

// TestImagePython uses Python's standard library, and pip in an environment of venv, without a network.
func TestImagePython(t *testing.T) {
	tier.Soak(t)
	rt := withPackages(t, "python", runtime.Options{})
	got := bash(t, rt, `python3 - <<-'END'
		import datetime, hashlib, json, sqlite3, ssl, subprocess, zipfile, zoneinfo
		db = sqlite3.connect(':memory:'); db.execute('create table t (a)'); db.execute('insert into t values (41)')
		print(json.dumps({'a': db.execute('select a + 1 from t').fetchone()[0], 'h': hashlib.sha256(b'x').hexdigest()[:8],
		  'o': str(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Asia/Tokyo')).utcoffset()), 's': subprocess.check_output(['echo', 'hi']).decode(),
		  'ca': len(ssl.create_default_context().get_ca_certs()) > 100}))
		with zipfile.ZipFile('local_wheel-1.0-py3-none-any.whl', 'w') as wheel:
		    info = 'local_wheel-1.0.dist-info/'
		    wheel.writestr('local_wheel.py', 'text = "from a wheel"')
		    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: local-wheel\nVersion: 1.0\n')
		    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
		    wheel.writestr(info + 'RECORD', f'local_wheel.py,,\n{info}METADATA,,\n{info}WHEEL,,\n{info}RECORD,,\n')
		END
		python3 -m venv v && v/bin/pip install -q --disable-pip-version-check --no-index --find-links . local-wheel
		v/bin/python -c 'import local_wheel; print(local_wheel.text)'`)
	if want := `{"a": 42, "h": "2d711642", "o": "9:00:00", "s": "hi\n", "ca": true}` + "\nfrom a wheel\n"; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestImageBuild compiles an addon with node-gyp, which finds Node's headers in the image.
func TestImageBuild(t *testing.T) {
	tier.Soak(t)
	rt := withPackages(t, "build", runtime.Options{})
	got := bash(t, rt, `
		echo '{ "name": "addon", "version": "1.0.0" }' > package.json
		echo '{ "targets": [{ "target_name": "addon", "sources": ["addon.cc"] }] }' > binding.gyp
		cat > addon.cc <<-'END'
			#include <node.h>
			#include <string>
			void Answer(const v8::FunctionCallbackInfo<v8::Value>& args) {
			  args.GetReturnValue().Set(static_cast<int>(std::string(42, 'x').size()));
			}
			NODE_MODULE_INIT() { NODE_SET_METHOD(exports, "answer", Answer); }
		END
		npm install --no-audit >&2
		echo 'int main(void) { return 0; }' > main.c && cc main.c && ./a.out
		node -p 'require("./build/Release/addon.node").answer()'`)
	if string(got) != "42\n" {
		t.Errorf("the addon returned %s", got)
	}
}

// TestImageBrowser takes a screenshot of a page whose background is red.
func TestImageBrowser(t *testing.T) {
	tier.Packages(t)
	limits := runtime.Limits{Memory: 1 << 30, Pids: 256}
	rt := withPackages(t, "browser", runtime.Options{Limits: limits, Permissions: policy.Default()})
	got := bash(t, rt, `
		echo '<body style="background: red"><h1>&#x1f600;' > page.html
		chromium --headless --no-sandbox --screenshot=page.png --window-size=300,200 file:///workspace/page.html >&2
		cat page.png`)
	picture, err := png.Decode(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	if size, corner := picture.Bounds().Size(), fmt.Sprint(picture.At(299, 199)); size.X != 300 || size.Y != 200 || corner != "{255 0 0 255}" {
		t.Errorf("a picture of %v, with %s in the corner", size, corner)
	}
}
