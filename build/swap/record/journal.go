// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// Journal records a change of the manifest in progress. It is written before the manifest, and removed once the
// scheduler has been seen working. So an existing journal means an unfinished run.
type Journal struct {
	// Operation is install or rollback.
	Operation string    `json:"operation"`
	Started   time.Time `json:"started"`
	// Process is the ID of the process that makes the change.
	Process int `json:"process"`
	// Unproven are the identities of the manifests that unfinished
	// runs, including this one, have written. None was seen working.
	Unproven []string `json:"unproven,omitempty"`
}

// Installed records the last successful install.
type Installed struct {
	At time.Time `json:"at"`
	// Manifest is the SHA-256 sum of the file as written.
	Manifest string `json:"manifest"`
	Image    string `json:"image"`
	ImageID  string `json:"imageID"`
	Version  string `json:"version"`
	// Config is the SHA-256 sum of the configuration; empty without one.
	Config string `json:"config,omitempty"`
	// Mounts and Hardened are those of the swap.
	Mounts   string `json:"mounts,omitempty"`
	Hardened bool   `json:"hardened,omitempty"`
}

// ReadJSON reads a JSON file of the state directory into entry, and reports whether the file exists.
func ReadJSON(path string, entry any) (bool, error) {
	content, err := ReadIfExists(path)
	if content == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, entry); err != nil {
		return false, nextstep.With(fmt.Errorf("%s is damaged: %w", path, err),
			"read it, and remove it if you do not need it")
	}
	return true, nil
}

// WriteJSON writes a JSON file of the state directory.
func WriteJSON(path string, entry any) error {
	content, err := json.MarshalIndent(entry, "", "  ")
	if err != nil {
		return err
	}
	return WriteDurably(path, append(content, '\n'), 0o644)
}

// Unfinished returns the journal of an unfinished run; nil if there is none.
func (d Directory) Unfinished() (*Journal, error) {
	found := &Journal{}
	there, err := ReadJSON(d.journalFile(), found)
	if !there || err != nil {
		return nil, err
	}
	return found, nil
}

// IsUnproven reports whether a manifest is from an unfinished run and has never been seen working.
func (d Directory) IsUnproven(unfinished *Journal, content []byte) (bool, error) {
	if unfinished == nil || !slices.Contains(unfinished.Unproven, manifest.Identity(content)) {
		return false, nil
	}
	last, there, err := d.LastInstalled()
	// A run that was killed during its cleanup has seen the manifest working.
	return !there || last.Manifest != manifest.Sum(content), err
}

// WriteJournal records a manifest as not yet seen working, before it is written. It keeps the entries of an
// earlier unfinished run.
func (d Directory) WriteJournal(operation string, content []byte, before *Journal) error {
	begun := Journal{Operation: operation, Started: d.Started, Process: os.Getpid(), Unproven: []string{manifest.Identity(content)}}
	if before != nil {
		begun.Unproven = append(begun.Unproven, before.Unproven...)
	}
	if err := WriteJSON(d.journalFile(), begun); err != nil {
		return d.NoRoom("cannot write the journal", err)
	}
	return nil
}

// RestoreJournal restores the journal from before a run that has written nothing.
func (d Directory) RestoreJournal(before *Journal) error {
	if before == nil {
		return RemoveDurably(d.journalFile())
	}
	return WriteJSON(d.journalFile(), before)
}

// Undone records that the manifest from before a failed install is in place again.
func (d Directory) Undone(fallback, written []byte) error {
	last, there, err := d.LastInstalled()
	if err != nil {
		return err
	}
	// It has a new restart time now.
	if there && last.Manifest == manifest.Sum(fallback) && last.Manifest != manifest.Sum(written) {
		last.Manifest = manifest.Sum(written)
		if err := WriteJSON(d.InstalledFile(), last); err != nil {
			return err
		}
	}
	return d.EndJournal()
}

// EndJournal ends a change whose scheduler works: nothing is left to undo.
func (d Directory) EndJournal() error {
	return errors.Join(RemoveDurably(d.journalFile()), RemoveDurably(d.Undo()))
}

// RecordInstalled records the swap in a manifest as the last one that works.
func (d Directory) RecordInstalled(content []byte, swap manifest.Swap, imageID string) error {
	return WriteJSON(d.InstalledFile(), Installed{At: time.Now().UTC(), Manifest: manifest.Sum(content), Image: swap.Image, ImageID: imageID,
		Version: swap.Version, Config: swap.ConfigSHA256, Mounts: swap.Mounts, Hardened: swap.Hardened})
}

// LastInstalled returns the record of the last successful install, and whether there is one.
func (d Directory) LastInstalled() (last Installed, there bool, err error) {
	there, err = ReadJSON(d.InstalledFile(), &last)
	return last, there, err
}

// SavePrevious makes the manifest from before a change the previous one, unless it is the same as the written one.
func (d Directory) SavePrevious(written []byte) error {
	kept, err := ReadIfExists(d.Undo())
	if err != nil || kept == nil || manifest.Identity(kept) == manifest.Identity(written) {
		return err
	}
	if err := os.Rename(d.Undo(), d.Previous()); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but the manifest for a rollback cannot be saved: %w", err),
			"run this again")
	}
	return nil
}
