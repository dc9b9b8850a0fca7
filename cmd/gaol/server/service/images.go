package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/rootfs"
	"gaol/rootfs/layer"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// BuildImage builds an image of the tenant from another by steps. Until its end, it counts as a sandbox and a run.
func (s *Service) BuildImage(ctx context.Context, c *Call, in *requestjson.ImageIn) (_ *resultjson.ImageInfo, err error) {
	text, err := json.Marshal(in.Steps)
	if err != nil {
		return nil, err
	}
	audit.Of(ctx).SetCode(string(text), in.Permissions)
	account, begin := s.Account(c.Tenant), time.Now()
	if l := account.Limits(); l.Images == 0 || l.ImageBytes == 0 {
		return nil, Refuse(Forbidden, "the server lets you build no images: its operator has to set your quotas images and imageBytes")
	}
	done, err := account.Wait(ctx, quota.Builds)
	if err != nil {
		return nil, err
	}
	defer done()
	name, bytes, free, err := s.images.reserve(c.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	defer free()
	store, err := rootfs.Open(s.store)
	if err != nil {
		return nil, err
	}
	d, l, err := s.deriveOptions(c, in, store, bytes)
	if err != nil {
		return nil, err
	}
	release, err := admitSandbox(ctx, account, l)
	if err != nil {
		return nil, err
	}
	defer release()
	defer s.tenants.use(c.Tenant.Name)()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	output := buildOutput{sender: sender{to: c.To, cancel: cancel}}
	d.Name, d.Progress = name, &output
	image, err := store.Derive(running, d)
	output.send(outputs(EventStdout, output.split.End()))
	result := &runtime.Result{Duration: time.Since(begin)}
	if failed, ok := errors.AsType[*runtime.CommandError](err); ok {
		result = failed.Result
	} else if err != nil {
		result = nil
	}
	s.record(ctx, KindBuild, result, err)
	if err = output.failure(buildError(err, output.last)); err != nil {
		return nil, err
	}
	return &resultjson.ImageInfo{Name: in.Name, Size: image.Size}, nil
}

// deriveOptions returns the options of a build of an image of at most some bytes, and the limits of its commands.
func (s *Service) deriveOptions(c *Call, in *requestjson.ImageIn, store *rootfs.Store, bytes int64) (d rootfs.DeriveOptions, limits runtime.Limits, err error) {
	tree := requestjson.Tree{Image: in.From, Limits: in.Limits, Isolation: runtime.IsolationNative.String()}
	o, err := s.optionsWithoutMounts(c.Tenant, tree, in.Permissions, "")
	if err != nil {
		return d, limits, err
	}
	base, err := store.Stored(rootfs.BuildOptions{})
	if o.Image != "" {
		base, err = store.Lookup(o.Image)
	}
	if err != nil {
		return d, limits, err
	}
	if base.Size >= bytes {
		return d, limits, Refuse(TooLarge, "the base has %d bytes, and your quota imageBytes or the server's has %d left for this image", base.Size, bytes)
	}
	most := s.settings.Load().RunTimeoutMs
	timeout, err := bounded("timeoutMs", cmp.Or(in.TimeoutMs, min(runtime.DefaultStepTimeout.Milliseconds(), most)), most)
	if err != nil {
		return d, limits, err
	}
	runner := runtime.StepRunner{Options: o, Timeout: timeout}
	d = rootfs.DeriveOptions{From: base.ID, NoCache: true, Limits: layer.Limits{Bytes: bytes - base.Size, Entries: maxKeptEntries}}
	for i, step := range in.Steps {
		d.Steps = append(d.Steps, rootfs.Step{Run: step.Run, Runner: runner, Env: step.Env, User: step.User, Dir: step.Dir})
		if err := d.Steps[i].Check(); err != nil {
			return d, limits, Refuse(Invalid, "steps[%d]: %w", i, err)
		}
	}
	return d, runner.Limits(), nil
}

// maxLast bounds the output in the error of a build, in bytes.
const maxLast = 4 << 10

// buildOutput passes the output of a build to the client, if that wants it.
type buildOutput struct {
	sender
	split resultjson.Splitter
	last  []byte // the end of the output
}

// Write implements [io.Writer].
func (b *buildOutput) Write(p []byte) (int, error) {
	b.last = append(b.last, p...)
	b.last = b.last[max(0, len(b.last)-maxLast):]
	b.send(outputs(EventStdout, b.split.Split(p)))
	return len(p), nil
}

// buildError converts an error of a build.
func buildError(err error, last []byte) error {
	switch {
	case errors.Is(err, rootfs.ErrTooLarge):
		return Refuse(TooLarge, "%w, which is all that the quotas have left for this image", err)
	case is[*runtime.CommandError](err):
		return Refuse(StepFailed, "%w; the output ends with\n%s", err, strings.ToValidUTF8(string(last), "\uFFFD"))
	case isAny(err, rootfs.ErrRefused, rootfs.ErrVariables):
		return &Error{Code: Invalid, Err: err}
	}
	return err
}

// ImageList is a list of images.
type ImageList struct {
	Images []resultjson.ImageInfo `json:"images"`
	resultjson.MissingNodes
}

// ListImages lists the images that the tenant has built, sorted by name.
func (s *Service) ListImages(_ context.Context, c *Call, _ *struct{}) (ImageList, error) {
	list, err := s.images.list(c.Tenant)
	images := []resultjson.ImageInfo{}
	for _, i := range list {
		images = append(images, resultjson.ImageInfo(i))
	}
	return ImageList{Images: images}, err
}

// DeleteImage deletes an image that the tenant has built. It fails while a sandbox uses it.
func (s *Service) DeleteImage(ctx context.Context, c *Call, in *requestjson.ImageName) (None, error) {
	return None{}, s.images.removeAll(ctx, c.Tenant, in.Name)
}
