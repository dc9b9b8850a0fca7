package sandboxtools

// The structs below are the tables of the tools' arguments. What is read from JSON, what
// is checked, and what the schemas say comes from them alone: `json` is the name, `about`
// the description, and `rule` what [fieldsOf] lists.

// InitArgs are those of sandbox_init.
type InitArgs struct {
	ContainerID    string `json:"containerId" rule:"max=64 pattern=id" about:"The new sandbox's id, which no other one has. Left out or empty: one is made."`
	ImageName      string `json:"imageName" rule:"max=4095" about:"An image of the store: a name, an id, or an id's unique prefix; or a registry's reference or a path that the host lists, as it is listed. Left out or empty: the default image."`
	ContainerName  string `json:"containerName" rule:"max=64 pattern=name" about:"A name for people. It is the guest's host name if it can be one: letters, digits, dots and hyphens."`
	ProjectOutPath string `json:"projectOutPath" rule:"max=4095" about:"A folder of the host's, made if missing, that the guest reads and writes at /<rootPath>. Left out or empty: the files end with the sandbox."`
	RootPath       string `json:"rootPath" rule:"max=255 pattern=root default=workspace" about:"The folder of the guest's root that is its working directory, and that relative paths begin at."`
}

// DestroyArgs are those of sandbox_destroy.
type DestroyArgs struct {
	ContainerID     string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	RemoveContainer *bool  `json:"removeContainer" rule:"default=true" about:"false ends what it runs and lets it run nothing more, while its files can still be used, until it is destroyed with true or has been idle for too long."`
}

// CommandArgs are those of sandbox_command.
type CommandArgs struct {
	ContainerID      string   `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Executable       string   `json:"executable" rule:"required min=1 max=4095" about:"A program of the guest's: a path, or a name that is looked up in PATH. No shell comes in between."`
	Args             []string `json:"args" rule:"max=131071 items=8192" about:"Its arguments, passed on as they are."`
	WorkingDirectory string   `json:"workingDirectory" rule:"max=4095 default=." about:"The folder that it starts in, absolute or relative to /<rootPath>, which is the default."`
	EnvVars          []string `json:"envVars" rule:"min=2 max=131070 items=1024 pattern=env" about:"Variables as K=V, over those that the sandbox has. Of two with one name the last counts."`
	Timeout          int64    `json:"timeout" rule:"min=1 max=3600000 default=30000" about:"Milliseconds, after which it is killed."`
}

// WriteFileArgs are those of sandbox_write_file.
type WriteFileArgs struct {
	ContainerID      string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Path             string `json:"path" rule:"required min=1 max=4095" about:"A path of the guest's, absolute or relative to /<rootPath>."`
	Content          string `json:"content" rule:"required max=22369624 nul" about:"What is to be in the file, 16 MiB at most."`
	Encoding         string `json:"encoding" rule:"enum=utf8|base64 default=utf8" about:"What content is: text, or bytes as base64 with padding."`
	CreateParentDirs bool   `json:"createParentDirs" about:"Make the folders that are missing above it."`
}

// ReadFileArgs are those of sandbox_read_file.
type ReadFileArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Path        string `json:"path" rule:"required min=1 max=4095" about:"A path of the guest's, absolute or relative to /<rootPath>. The file has 16 MiB at most."`
	Encoding    string `json:"encoding" rule:"enum=utf8|base64 default=utf8" about:"How to return it. A file that is not UTF-8 is returned as base64 either way: the result says which it is."`
}

// ListDirectoryArgs are those of sandbox_list_directory.
type ListDirectoryArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Path        string `json:"path" rule:"required min=1 max=4095" about:"A folder of the guest's, absolute or relative to /<rootPath>."`
	Recursive   bool   `json:"recursive" about:"List what is in its folders, too. No link is followed."`
}

// CreateDirectoryArgs are those of sandbox_create_directory.
type CreateDirectoryArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Path        string `json:"path" rule:"required min=1 max=4095" about:"A path of the guest's, absolute or relative to /<rootPath>."`
	Recursive   bool   `json:"recursive" about:"Make the folders that are missing above it; that it is there is no error, then."`
}

// DeleteArgs are those of sandbox_delete.
type DeleteArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Path        string `json:"path" rule:"required min=1 max=4095" about:"A path of the guest's, absolute or relative to /<rootPath>. A link is removed itself."`
	Recursive   bool   `json:"recursive" about:"Remove a folder with all that is in it. Without, it has to be empty."`
	Force       bool   `json:"force" about:"That there is nothing is no error."`
}

// ExistsArgs are those of sandbox_exists.
type ExistsArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Path        string `json:"path" rule:"required min=1 max=4095" about:"A path of the guest's, absolute or relative to /<rootPath>."`
}

// FileInfoArgs are those of sandbox_file_info.
type FileInfoArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=id" about:"The sandbox's id."`
	Path        string `json:"path" rule:"required min=1 max=4095" about:"A path of the guest's, absolute or relative to /<rootPath>. Of a link, it is the link itself."`
}

func (a CommandArgs) container() string         { return a.ContainerID }
func (a WriteFileArgs) container() string       { return a.ContainerID }
func (a ReadFileArgs) container() string        { return a.ContainerID }
func (a ListDirectoryArgs) container() string   { return a.ContainerID }
func (a CreateDirectoryArgs) container() string { return a.ContainerID }
func (a DeleteArgs) container() string          { return a.ContainerID }
func (a ExistsArgs) container() string          { return a.ContainerID }
func (a FileInfoArgs) container() string        { return a.ContainerID }
