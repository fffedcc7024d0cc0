package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/version"
)

func TestIdentify(t *testing.T) {
	const bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"MIT":         {"Permission is hereby granted, free of\ncharge, to any person obtaining a copy", []string{"MIT"}},
		"BSD-2":       {bsd, []string{"BSD-2-Clause"}},
		"BSD-3":       {bsd + " ... Neither the name of", []string{"BSD-3-Clause"}},
		"Apache":      {"Apache License\n   Version 2.0, January 2004", []string{"Apache-2.0"}},
		"two of them": {"Apache License, Version 2.0. Permission is hereby granted, free of charge, to any person obtaining a copy", []string{"Apache-2.0", "MIT"}},
		"AGPL":        {"GNU AFFERO GENERAL PUBLIC LICENSE Version 3", []string{"AGPL"}},
		"unknown":     {"All rights reserved.", nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, identify(tc.text)) })
	}
}

func TestLicencesThatAreNotAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"GPL":        "GNU GENERAL PUBLIC LICENSE Version 2",
		"unknown":    "All rights reserved.",
		"BSL":        "Business Source License 1.1",
		"one of two": "Permission is hereby granted, free of charge, to any person obtaining a copy, or the GNU Lesser General Public License",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(text), 0o600))
			_, err := readLicences(linked{Path: "example.com/m", Version: "v1.0.0", Dir: dir})
			assert.ErrorContains(t, err, "example.com/m v1.0.0")
		})
	}
	_, err := readLicences(linked{Path: "example.com/m", Version: "v1.0.0", Dir: t.TempDir()})
	assert.ErrorContains(t, err, "no licence")
}

// Every command that a person sees has a manual page, and every shell a script.
func TestManAndCompletions(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, writeMan(dir))
	for _, page := range []string{"grapnel.1", "grapnel-run.1", "grapnel-hooks-check.1", "grapnel-runs-list.1"} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		require.NoError(t, err)
		assert.Contains(t, string(text), ".SH SYNOPSIS")
	}
	require.NoError(t, writeCompletions(dir))
	for _, script := range []string{"grapnel.bash", "_grapnel", "grapnel.fish", "grapnel.ps1"} {
		assert.FileExists(t, filepath.Join(dir, script))
	}
}

func TestCheckVersion(t *testing.T) {
	require.NoError(t, checkVersion(version.Next))
	require.NoError(t, checkVersion(version.Next+"-snapshot.f4d6745"))
	assert.Error(t, checkVersion("9.9.9"))
}
