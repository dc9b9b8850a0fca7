package permissions

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// probe finds gaps of a denied operation in a folder: through the working
// directory, and with files and programs in it.
const probe = `import fs from 'node:fs'; import { spawnSync } from 'node:child_process';
	const [, , dir, denied] = process.argv, got = [], t = (name, f) => { try { f(); got.push(name) } catch {} };
	const walk = (at, depth) => { try { return fs.readdirSync(at, { withFileTypes: true }).slice(0, 40).flatMap(e => [[at + '/' + e.name, e], ...e.isDirectory() && depth ? walk(at + '/' + e.name, depth - 1) : []]) } catch { return [] } };
	const files = dir === '/proc' ? [] : walk(dir === '/' ? '' : dir, 2).filter(([path]) => !/^\/(proc|dev\/(null|zero|full|u?random|tty|ptmx|pts|fd|std))/.test(path));
	if (denied === 'all') {
		t('list', () => fs.readdirSync(dir));
		for (const [path, e] of files) if (e.isFile()) t('read ' + path, () => fs.readFileSync(path));
	}
	if (denied !== 'execute') {
		t('write', () => fs.writeFileSync(dir + '/gaol-new', ''));
		t('make', () => fs.mkdirSync(dir + '/gaol-made'));
		t('chmod', () => { const { mode } = fs.statSync(dir); fs.chmodSync(dir, mode & 0o7777) });
		for (const [path, e] of files) if (e.isFile()) t('append ' + path, () => fs.closeSync(fs.openSync(path, 'a')));
	}
	if (denied !== 'write') {
		t('run', () => { fs.writeFileSync(dir + '/gaol-script', '#!/bin/sh\ntrue\n', { mode: 0o755 }); const { error } = spawnSync(dir + '/gaol-script'); if (error) throw error });
		for (const [path, e] of files) if (e.isFile() && e.name !== 'node' && fs.statSync(path).mode & 0o111) t('run ' + path, () => { const { error } = spawnSync(path, ['--version'], { timeout: 500, stdio: 'ignore' }); if (error?.code === 'EACCES') throw error });
	}
	__return(got)`

// Each rule about each folder of the tree is either enforced or rejected by name. None is
// accepted without effect.
func TestPermissionFSEveryPlace(t *testing.T) {
	operations := map[string]string{"all": "", "write": `"operations":` + changes + `,`, "execute": `"operations":["execute"],`}
	free := harness.Create(t, runtime.Options{})
	taken, refused := 0, 0
	for _, dir := range harness.Some(strings.Fields("/ /etc /etc/ssl /usr /usr/bin /usr/lib /usr/local /usr/local/bin /usr/local/lib /usr/libexec /var /var/tmp /opt /root /run /home /home/node /tmp /dev /dev/shm /dev/pts /proc /sys /mnt /srv/x /workspace /workspace/x/y /bin /lib")) {
		for name, text := range operations {
			rule := `{"mode":"deny",` + text + `"paths":["` + strings.TrimSuffix(dir, "/") + `/**"]}`
			rt, err := runtime.Create(t.Context(), harness.Options(runtime.Options{Permissions: fsRules(t, "allow", rule)}))
			if errors.Is(err, runtime.ErrUnsupported) && !harness.Needs(t, runtime.FeatureLandlock) {
				refused++
				continue
			}
			if err != nil {
				if bad, ok := errors.AsType[*policy.RuleError](err); !ok || !strings.HasPrefix(bad.Place, "fs.rules[0]") {
					t.Errorf("%s: %v", rule, err)
				}
				continue
			}
			o := runtime.RunOptions{Args: []string{dir, name}, Cwd: "/"}
			if len(value[[]string](t, free, probe, o)) > 0 {
				taken++ // otherwise the probe proves nothing
			}
			got := value[[]string](t, rt, probe, o)
			got = slices.DeleteFunc(got, func(g string) bool { return needed(strings.TrimPrefix(strings.TrimPrefix(g, "run "), "read ")) })
			if len(got) > 0 {
				t.Errorf("%s: it allows %q", rule, got[:min(8, len(got))])
			}
			if err := rt.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if taken+refused < harness.Fewer(25, 8) {
		t.Errorf("only %d rules take anything away, %d are not supported: the others prove nothing", taken, refused)
	}
}

// needed reports whether Node needs a file whatever is denied around it.
func needed(path string) bool {
	return strings.HasPrefix(path, "/usr/lib/") || strings.HasPrefix(path, "/usr/lib64/") || strings.HasPrefix(path, "/usr/libexec/gaol/") || path == "/usr/local/bin/node" || path == "/etc/ssl/openssl.cnf"
}
