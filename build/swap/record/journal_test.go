// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

// directoryFor returns an empty state directory, and what it says.
func directoryFor(t *testing.T) (Directory, *strings.Builder) {
	t.Helper()
	said := &strings.Builder{}
	return Directory{Path: t.TempDir(), Started: time.Now(), Say: func(format string, arguments ...any) { fmt.Fprintf(said, format+"\n", arguments...) }}, said
}

func TestADamagedRecordIsNotTakenForNone(t *testing.T) {
	file := swaptest.Put(t, filepath.Join(t.TempDir(), "journal.json"), `{"operation": "inst`)
	if there, err := ReadJSON(file, &Journal{}); there || err == nil {
		t.Errorf("there %v, error %v", there, err)
	}
	if there, err := ReadJSON(file+".not", &Journal{}); there || err != nil {
		t.Errorf("no record: there %v, error %v", there, err)
	}
}

func TestAManifestOfAnUnfinishedRunIsInDoubtUntilItWasSeen(t *testing.T) {
	s, _ := directoryFor(t)
	unfinished := &Journal{Unproven: []string{manifest.Identity([]byte(swaptest.Stock))}}
	again := []byte(swaptest.Restarted(t, swaptest.Stock))
	other := []byte(strings.Replace(swaptest.Stock, "v1.23.17", "v1.23.18", 1))
	expect := func(when string, unfinished *Journal, manifest []byte, want bool) {
		t.Helper()
		if got, err := s.IsUnproven(unfinished, manifest); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	expect("no run is unfinished", nil, again, false)
	expect("the run wrote it", unfinished, again, true)
	expect("another program wrote another one", unfinished, other, false)
	if err := WriteJSON(s.InstalledFile(), Installed{Manifest: manifest.Sum(again)}); err != nil {
		t.Fatal(err)
	}
	expect("the run saw it work, and was ended as it cleared up", unfinished, again, false)
}
