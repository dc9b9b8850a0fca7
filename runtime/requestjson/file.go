package requestjson

// Requests about files. The HTTP API has their fields in queries, and sessions have them in JSON.
type (
	// FileWrite describes a file to write.
	FileWrite struct {
		FileMode
		Parents bool `json:"createParents,omitempty" query:"createParents" doc:"Make missing parent folders."`
	}

	// FileMode holds the permissions of a new file or folder.
	FileMode struct {
		Mode string `json:"mode,omitempty" query:"mode" pattern:"^[0-7]{1,4}$" doc:"Permissions of a new file or folder, in octal. By default 644, and 755 for a folder."`
	}

	// FileStat identifies a file to describe.
	FileStat struct {
		Links bool `json:"links,omitempty" query:"links" doc:"Describe a link itself."`
	}

	// FileRead selects a part of a file.
	FileRead struct {
		Offset int64 `json:"offset,omitempty" query:"offset" minimum:"0" doc:"The byte to begin at. By default 0."`
		Limit  int64 `json:"limit,omitempty" query:"limit" minimum:"0" doc:"How many bytes to read at most. By default all."`
	}

	// FolderList selects files to list.
	FolderList struct {
		Recursive bool   `json:"recursive,omitempty" query:"recursive" doc:"List everything below the folder, without following links."`
		Limit     int    `json:"limit,omitempty" query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"How many files to list at most."`
		Exclude   string `json:"exclude,omitempty" query:"exclude" maxLength:"255" doc:"The name of folders below the folder that are listed without their content, such as node_modules."`
	}

	// FolderMake describes a folder to make.
	FolderMake struct {
		FileMode
		Parents bool `json:"createParents,omitempty" query:"createParents" doc:"Make missing parent folders. An existing folder is no error then."`
	}

	// FileRemove identifies a file to remove.
	FileRemove struct {
		Recursive bool `json:"recursive,omitempty" query:"recursive" doc:"Remove a folder with its content."`
	}

	// FolderUnpack describes how to unpack an archive.
	FolderUnpack struct {
		Parents bool `json:"createParents,omitempty" query:"createParents" doc:"Make the folder and its parents if they are missing."`
	}
)
