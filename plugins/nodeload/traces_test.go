// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"archive/tar"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"
)

// tracesFolder is the variable with the folder of the recorded traces, which are not part of the project: OpenB's list
// of pods of a production cluster, and the recorded use of containers.
const tracesFolder = "TRACES"

// read returns the records of a file with a header.
func read(t *testing.T, from io.Reader) (records []map[string]string) {
	t.Helper()
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		record := map[string]string{}
		for i, name := range rows[0] {
			record[name] = row[i]
		}
		records = append(records, record)
	}
	return records
}

func open(t *testing.T, path ...string) *os.File {
	t.Helper()
	file, err := os.Open(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// recordedUse returns the recorded use of some containers, as a share, for each minute of a day.
func recordedUse(t *testing.T, folder string) (series [][]float64) {
	t.Helper()
	unzipped, err := gzip.NewReader(open(t, folder, "pod_memory_util_anon.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	if _, err := archive.Next(); err != nil {
		t.Fatal(err)
	}
	byContainer := map[string][]float64{}
	for _, record := range read(t, archive) {
		if share, err := strconv.ParseFloat(record["value"], 64); err == nil {
			byContainer[record["container_ip"]] = append(byContainer[record["container_ip"]], share)
		}
	}
	var names []string
	for name, values := range byContainer {
		if len(values) > 1000 {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		series = append(series, byContainer[name])
	}
	return series
}

// openB returns the pods of OpenB's list that run for less than a time. Pods with equal requests have one owner, and
// use what one container was recorded to use, from different minutes on. The first pods of the given time come at 0.
func openB(t *testing.T, folder string, from, to, shorter int) (jobs []job) {
	t.Helper()
	series, owners := recordedUse(t, folder), map[string]int{}
	for i, record := range read(t, open(t, folder, "openb_pod_list_cpu250.csv")) {
		request, _ := strconv.ParseInt(record["cpu_milli"], 10, 64)
		since, err := strconv.Atoi(record["scheduled_time"])
		until, err2 := strconv.Atoi(record["deletion_time"])
		if err != nil || err2 != nil || until <= from || since >= to || until-since >= shorter {
			continue
		}
		class := fmt.Sprint(request, record["memory_mib"], record["num_gpu"], record["qos"])
		if _, known := owners[class]; !known {
			owners[class] = len(owners)
		}
		values, offset := series[owners[class]%len(series)], 37*i
		jobs = append(jobs, job{owner: fmt.Sprint("class-", owners[class]), request: request, arrives: since - from, ends: until - from,
			use: func(age int) float64 { return values[(offset+age/60)%len(values)] }})
	}
	sort.SliceStable(jobs, func(i, j int) bool { return jobs[i].arrives < jobs[j].arrives })
	return jobs
}

// TestPredictionOnTraces gives the errors of the prediction on recorded traces, before and after the prediction took
// ended pods into account and learned the use of owners' pods, and checks that they became smaller.
func TestPredictionOnTraces(t *testing.T) {
	folder := os.Getenv(tracesFolder)
	if folder == "" {
		t.Skipf("NOT CHECKED: %s is not set; next: %s=FOLDER with OpenB's lists", tracesFolder, tracesFolder)
	}
	const day = 24 * 3600
	recorded := openB(t, folder, 147*day, 149*day, 1<<40)
	// The short ones of the whole list come 600 times as fast.
	short := openB(t, folder, 0, 1<<40, 600)
	for i := range short {
		lives := short[i].ends - short[i].arrives
		short[i].arrives /= 600
		short[i].ends = short[i].arrives + lives
	}
	for _, test := range []struct {
		name  string
		jobs  []job
		nodes int
		cores float64
	}{
		{"two days of a production cluster", recorded, 6, 96},
		{"its pods of less than ten minutes", short, 6, 96},
		{"generated jobs of 20 to 120 s that use 85 %", shortJobs(0.45, 0.85, 100), 10, 10},
		{"generated jobs of 20 to 120 s that use 30 %", shortJobs(0.45, 0.3, 100), 10, 10},
	} {
		before, after := play(t, test.jobs, test.nodes, test.cores)
		t.Logf("| %s | %d | %.0f %% | %v | %v |", test.name, len(test.jobs), 100*before.load/float64(before.count), &before, &after)
		if after.absolute > before.absolute {
			t.Errorf("%s: the prediction became worse", test.name)
		}
	}
}
