//go:build !noserver

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/rootfs"
	"gaol/rootfs/debian"
	"gaol/rootfs/layer"
	"gaol/rootfs/registry"
	"gaol/runtime"
)

const imageLong = `An image is the root file system that guests see read-only: Node, npm, a shell
and the usual small tools. Images are kept in a store, by the hash of their content.

gaol run builds the default image if it is missing. Others are built with another version
of Node, or imported from a container registry, a folder or a file. gaol image export writes
an image as a file for gaol and other tools.`

func (a *app) imageCommand() *cobra.Command {
	list := a.listCommand("List the images of the store", rootfs.Open, "ID\tNODE\tARCH\tSIZE\tCREATED\tNAMES", func(i *rootfs.Image) string {
		return fmt.Sprintf("%.*s\t%s\t%s\t%.0f MB\t%s\t%s", shortID, i.ID, cmp.Or(i.Node, "-"), i.Arch,
			float64(i.Size)/1e6, i.Created.Local().Format(time.DateTime), strings.Join(i.Names, " "))
	})
	remove := a.removeCommand("Remove images, by name, id or an id's unique prefix", `A NAME is removed, and the image with it unless it has another name. A name such as
node24.21.0-23ed74ce174b, which every build gives, does not count. An id is removed with
all its names. An image in use cannot be removed.`, rootfs.Open)
	verify := a.verifyCommand("images", `Remove a changed image by its id, which gaol image ls prints, and build or import it
again: a build does not replace an image that the store has.`, rootfs.Open)
	tag := a.tagCommand("images", rootfs.Open)
	prune := a.pruneCommand("images", `Builds take the names of earlier ones. A name that every build gives, such
as node24.21.0-23ed74ce174b, does not count, except for this version's default and minimal images.`, rootfs.Open)
	return group("image", "List, build, import, export, tag, verify, remove and prune images", imageLong, list, a.imageBuild(), a.imageImport(), a.imageExport(), tag, verify, remove, prune)
}

const buildLong = `Build an image and print its id on standard output.

Node and npm come from the npm registry of npm_config_registry, and are checked against known
hashes. bash, git, curl, ssh, jq, ripgrep, sqlite3, make, tar, zip, unzip, fontconfig with the
DejaVu fonts, time zones and CA certificates are Debian packages of this machine's apt sources,
which are brought up to date without --if-missing. Nothing is installed on this machine, and no
maintainer script is run.

  default         Node, npm, and the programs above            211 MB
  --minimal       Node, npm and busybox, without apt           149 MB
`

// buildLongWith follows the rows for the presets.
const buildLongWith = `
--with adds any other Debian packages with their dependencies, too: --with ffmpeg,build. For
--image, the images are named minimal, and by the values of --with: build_ffmpeg.

--from derives an image from another by steps: --run, --with, --env and --user, in their order on
the command line, or those of a Gaolfile. Each command runs in a sandbox, whose user owns the
files of the image, with the permissions and limits of the flags below. The results of steps are
kept and used again; gaol image prune removes them. See docs/images.md.`

// imageBuild returns the command that builds an image, or derives one.
func (a *app) imageBuild() *cobra.Command {
	// Unlike a.progress, also into files and pipes, such as logs of builds: there is no program
	// whose output it could disturb.
	o := rootfs.BuildOptions{Progress: a.stderr}
	d := rootfs.DeriveOptions{Progress: a.stderr}
	var presets []string
	long, file := buildLong, ""
	for _, p := range debian.Presets {
		presets = append(presets, p.Name)
		long += fmt.Sprintf("  --with %-8s %-44s %d MB\n", p.Name, p.About, p.Size)
	}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build an image, or derive one, and print its id",
		Long:  long + buildLongWith,
		Example: `  gaol image build
  gaol image build --node 22 --name old
  gaol image build --with python && gaol run --image python --command -- python3 -V
  gaol image build --from default --preset npm --run 'npm install -g tsx' --name tsx
  gaol image build --file app/Gaolfile --name app`,
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&o.NodeVersion, "node", "", "`VERSION` of Node, such as 22 or 24.21.0 (default "+rootfs.DefaultNode+")")
	set.BoolVar(&o.Minimal, "minimal", false, "leave out all Debian packages")
	add := func(step rootfs.Step, err error) error {
		d.Steps = append(d.Steps, step)
		return err
	}
	set.Func("with", "Debian `PACKAGES` to add, or "+strings.Join(presets, ", "), func(text string) error {
		list := strings.Split(text, ",")
		o.With = append(o.With, list...)
		return add(rootfs.Step{With: list}, nil)
	})
	flags.Complete(cmd, "with", cobra.FixedCompletions(presets, cobra.ShellCompDirectiveNoFileComp))
	set.StringVar(&o.Name, "name", "", "additional `NAME` of the image, for --image")
	set.BoolVar(&o.IfMissing, "if-missing", false, "build only if the store lacks such an image; otherwise give it back the names that it has lost")
	set.Var(flags.Text(&d.From), "from", "`NAME` or id of the image to derive from (default: the default image)")
	set.Var(flags.Text(&file), "file", "`FILE` with the steps, such as a Gaolfile, or - for standard input")
	set.Func("run", "`COMMAND` for the shell, such as 'npm install -g tsx'; repeatable", func(text string) error {
		return add(parseRun(cmd.Context(), text))
	})
	set.Func("env", "variable of later commands and of runs, as `NAME=VALUE`; repeatable", func(text string) error {
		return add(variable(text))
	})
	set.Func("user", "`NAME` of the user of later commands: root, which owns the files of the image, or node", func(name string) error {
		return add(rootfs.Step{User: name}, nil)
	})
	set.BoolVar(&d.NoCache, "no-cache", false, "perform all steps again")
	set.BoolVar(&d.TrustNode, "trust-node", false, "allow the derived image's Node to run as root outside of jails, for --launcher zygote")
	step := flags.NewStep(cmd)
	return storeCommand(cmd, rootfs.Open, func(cmd *cobra.Command, store *rootfs.Store, _ []string) error {
		if !slices.ContainsFunc([]string{"from", "file", "run", "env", "user"}, set.Changed) {
			return a.printID(store.Build(cmd.Context(), o))
		}
		for _, name := range []string{"node", "minimal", "if-missing"} {
			if set.Changed(name) {
				return fmt.Errorf("--%s is for an image that is built, not derived: build it first, and name it by --from", name)
			}
		}
		d.Name = o.Name
		return a.printID(a.derive(cmd.Context(), store, d, file, step))
	})
}

// derive derives an image by the steps of the command line, or of the Gaolfile.
func (a *app) derive(ctx context.Context, store *rootfs.Store, d rootfs.DeriveOptions, file string, step *flags.Step) (*rootfs.Image, error) {
	if file != "" {
		if len(d.Steps) > 0 {
			return nil, errors.New("--file beside --run, --with, --env or --user: use one of them")
		}
		folder, err := os.OpenRoot(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		defer func() { _ = folder.Close() }()
		f, err := a.readGaolfile(ctx, file, folder)
		if err != nil {
			return nil, err
		}
		if f.from != "" && d.From != "" {
			return nil, errors.New("--from beside FROM of the Gaolfile: use one of them")
		}
		d.From, d.Steps = cmp.Or(d.From, f.from), f.steps
	}
	runner, err := step.Runner(ctx)
	if err != nil {
		return nil, err
	}
	for i := range d.Steps {
		if s := &d.Steps[i]; s.Run != "" && s.Runner == nil {
			s.Runner = runner
		}
	}
	image, err := store.Derive(ctx, d)
	if failed, ok := errors.AsType[*runtime.CommandError](err); ok {
		report.Notes(a.stderr, step.ResultNotes(failed.Result)...)
	}
	return image, err
}

// printID prints the id of an image, unless making it has failed.
func (a *app) printID(image *rootfs.Image, err error) error {
	if err != nil {
		return err
	}
	return a.print(image.ID + "\n")
}

const importLong = `Import an image that another tool built, and print its id on standard output.
SOURCE is one of

  registry.example/app:1   an image in a registry, with or without docker:// before it
  DIR                      an OCI layout, or a root file system
  FILE                     the output of docker save, an OCI layout as a tar, or a tar of a
                           root file system; may be compressed with gzip or zstd

and a path if a file or folder of that name exists. Digests are checked. Credentials come
from docker login. Plain http is used for registries on this host only.

Owners, set-id bits, devices and extended attributes are dropped: the files belong to
root, and every guest can read them. Of the image's environment, only PATH is used. Node is
the one in /usr/local/bin or in PATH. An image without Node can run commands.`

func (a *app) imageImport() *cobra.Command {
	o := rootfs.ImportOptions{Registry: registry.Client{}, Progress: a.stderr, Limits: layer.Limits{Bytes: layer.DefaultBytes, Entries: layer.DefaultEntries}}
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Import a container image, a folder or a tar",
		Long:  importLong,
		Example: `  gaol image import registry.example/app:1 --name app
  gaol image import ./saved.tar --name app
  gaol run --image app --command -- ls /`,
		Args: cobra.ExactArgs(1),
	}
	set := cmd.Flags()
	set.StringVar(&o.Name, "name", "", "`NAME` of the image, for --image")
	set.BoolVar(&o.TrustNode, "trust-node", false, "allow the image's Node to run as root outside of jails, for --launcher zygote")
	set.Var(flags.Size(&o.Limits.Bytes), "max-size", "largest size of the image, such as 4g")
	set.Int64Var(&o.Limits.Entries, "max-entries", layer.DefaultEntries, "largest number `N` of files and folders")
	return storeCommand(cmd, rootfs.Open, func(cmd *cobra.Command, store *rootfs.Store, args []string) error {
		image, err := store.Import(cmd.Context(), args[0], o)
		if errors.Is(err, os.ErrPermission) && os.Geteuid() == 0 { // sudo, the usual advice, would not help
			return report.Advise(err, "import what root can read all of: a file system of the kernel's, such as /proc, is not an image")
		}
		return a.printID(image, err)
	})
}

const exportLong = `Write an image as an OCI archive, a tar of an OCI layout, to standard output.

It has one layer. An imported image keeps the config that it was imported with; the entrypoint of
others is node. gaol's own programs in /usr/libexec/gaol are left out: an import adds those of its
own gaol. The layer is first stored in the folder of the store, which needs space for it.`

func (a *app) imageExport() *cobra.Command {
	cmd := &cobra.Command{
		Short: "Write an image as an OCI archive to standard output",
		Long:  exportLong,
		Example: `  gaol image export default > image.tar
  podman load -i image.tar
  gaol image import ./image.tar --name copy`,
	}
	return a.exportCommand(cmd, rootfs.Open, func(ctx context.Context, w io.Writer, store *rootfs.Store, ref string) error {
		return store.Export(ctx, ref, w)
	})
}
