// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
)

// Status is the state of this node's scheduler and its files.
type Status struct {
	Node     string `json:"node"`
	Manifest string `json:"manifest"`
	// Swapped reports whether the manifest has a swap.
	Swapped bool   `json:"swapped"`
	Image   string `json:"image"`
	ImageID string `json:"imageID,omitempty"`
	Version string `json:"version,omitempty"`
	// Config is the path of the configuration on this host; empty
	// without one. ConfigSHA256 is its sum at the time of the install.
	Config       string `json:"config,omitempty"`
	ConfigSHA256 string `json:"configSHA256,omitempty"`
	// Running reports whether a container of the manifest's image runs. Since is its creation time; Restarts is the
	// number of ended containers in the same pod.
	Running  bool      `json:"running"`
	Since    time.Time `json:"since,omitzero"`
	Restarts int       `json:"restarts"`
	// Health is ok, or the reason why the scheduler is not healthy.
	Health string `json:"health"`
	// Working reports whether the scheduler runs and is healthy, and its lease is held and was renewed recently.
	Working bool `json:"working"`
	// Lease is the lease's namespace and name, Holder its holder, and Renewed the last renewal.
	Lease   string    `json:"lease,omitempty"`
	Holder  string    `json:"holder,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	// Expired reports whether the lease was not renewed in time: then no scheduler works.
	Expired bool `json:"expired,omitempty"`
	// Here reports whether the holder is a scheduler of this node.
	Here bool `json:"here"`
	// Notes lists inconsistencies and pending pods, one sentence each.
	Notes []string `json:"notes,omitempty"`

	// leaseUnknown reports whether the lease could not be read.
	leaseUnknown bool
}

// Status returns the state of this node's scheduler. It changes nothing.
func (t *Tool) Status(ctx context.Context) (*Status, error) {
	content, pod, err := t.readManifest()
	if err != nil {
		return nil, err
	}
	s := &Status{Node: t.node.Kubelet.NodeName, Manifest: t.manifest, Swapped: pod.Swapped, Image: pod.Image, Version: pod.Swap.Version,
		ConfigSHA256: pod.Swap.ConfigSHA256}
	note := func(format string, arguments ...any) { s.Notes = append(s.Notes, fmt.Sprintf(format, arguments...)) }

	if inside := pod.ConfigFile(); inside != "" {
		s.Config = inside
		if host, mounted := pod.HostPath(inside); mounted {
			s.Config = host
		}
	}
	if s.ConfigSHA256 != "" {
		if found, err := record.ReadRegular(filepath.Join(pod.Swap.ConfigFolder, manifest.ConfigFileName)); err != nil {
			note("the configuration cannot be read: %v", err)
		} else if manifest.Sum(found) != s.ConfigSHA256 {
			note("%s was changed since it was installed; the running scheduler may use either version", s.Config)
		}
	}
	if id, err := t.node.Runtime.ImageID(ctx, pod.Image); err != nil {
		note("%v", err)
	} else if id == "" {
		note("the container runtime does not have the image %s", pod.Image)
	} else {
		s.ImageID = id
	}
	if err := t.running(ctx, s, pod, note); err != nil {
		return nil, err
	}
	s.Health = cmp.Or(host.Healthy(ctx, pod.HealthURL()), "ok")
	config, err := host.ConfigOf(pod)
	// A half-swapped manifest is reported below, with another next step.
	if err != nil && !manifest.HalfSwapped(pod) {
		note("%v", err)
	}
	if lease := pod.Lease(config); lease != nil {
		s.Lease = lease.String()
		if holder, err := t.node.Cluster.Holder(ctx, *lease); err != nil {
			note("%v", err)
			s.leaseUnknown = true
		} else {
			s.setHolder(holder, time.Now())
		}
	}
	if server, err := t.node.Cluster.Client.Discovery().ServerVersion(); err == nil {
		if text := noteSkew(server.GitVersion, pod); text != "" {
			note("%s", text)
		}
	}
	if s.Running && s.Health == "ok" && !s.leaseUnknown && !s.led() {
		note(noLease, pod.Object.Name+"-"+s.Node)
	}
	if pending, err := t.node.Cluster.Pending(ctx); err == nil {
		for _, name := range slices.Sorted(maps.Keys(pending)) {
			if host.ServesNow(pod, name) {
				note("pods that wait for %s: %d, such as %s; next: kubectl describe pod, which shows the reason",
					name, len(pending[name]), pending[name][0])
			}
		}
	}
	var findings Findings
	if err := t.checkUndone(&findings, content, pod); err != nil {
		return nil, err
	}
	for _, finding := range findings {
		note("%s; next: %s", finding.What, finding.Next)
	}
	s.Working = s.Running && s.Health == "ok" && s.led()
	return s, nil
}

// leaseSlack is how long an expired lease still counts as held, since the clocks of nodes differ.
const leaseSlack = 10 * time.Second

// setHolder sets the lease holder and whether the lease has expired.
func (s *Status) setHolder(holder resourcelock.LeaderElectionRecord, now time.Time) {
	s.Holder, s.Renewed, s.Here = holder.HolderIdentity, holder.RenewTime.Time, host.IsHere(holder.HolderIdentity)
	s.Expired = s.Holder != "" && now.Sub(s.Renewed) > time.Duration(holder.LeaseDurationSeconds)*time.Second+leaseSlack
}

// led reports whether a scheduler holds the lease, or none needs to.
func (s *Status) led() bool {
	return s.Lease == "" || !s.leaseUnknown && s.Holder != "" && !s.Expired
}

// running finds the running container of the pod in the manifest.
func (t *Tool) running(ctx context.Context, s *Status, pod *manifest.Pod, note func(string, ...any)) error {
	containers, err := t.node.Containers(ctx, pod)
	if err != nil {
		return err
	}
	var newest *cri.Container
	for _, c := range containers {
		if host.Runs(c) && (newest == nil || c.CreatedAt > newest.CreatedAt) {
			newest = c
		}
	}
	if newest == nil {
		note("no container of the scheduler runs; next: journalctl -u kubelet")
		return nil
	}
	for _, c := range containers {
		if c.PodSandboxId == newest.PodSandboxId && !host.Runs(c) {
			s.Restarts++
		}
	}
	s.Since = time.Unix(0, newest.CreatedAt)
	s.Running = s.ImageID == "" || newest.ImageRef == s.ImageID
	if !s.Running {
		note("the running container has the image %s, but the manifest has %s", host.Short(newest.ImageRef), host.Short(s.ImageID))
	}
	return nil
}

// WriteJSON prints the status as JSON.
func (s *Status) WriteJSON(output io.Writer) error {
	encoder := json.NewEncoder(output)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// Write prints the status for a person.
func (s *Status) Write(output io.Writer) error {
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	line := func(name, format string, arguments ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, arguments...))
	}
	line("node", "%s", s.Node)
	if s.Swapped {
		line("scheduler", "swapped: %s", manifest.Version(s.Version))
	} else {
		line("scheduler", "not swapped: kubeadm's own")
	}
	line("image", "%s (%s)", s.Image, host.Short(s.ImageID))
	line("config", "%s", cmp.Or(s.Config, "none: the scheduler's own defaults"))
	if s.Since.IsZero() {
		line("runs", "no")
	} else {
		restarts := fmt.Sprintf("%d restarts", s.Restarts)
		if s.Restarts == 1 {
			restarts = "1 restart"
		}
		line("runs", "since %s (%s), %s", s.Since.Local().Format("2006-01-02 15:04:05 MST"), time.Since(s.Since).Round(time.Second), restarts)
	}
	line("health", "%s", s.Health)
	line("lease", "%s", s.leaseInWords())
	for _, note := range s.Notes {
		line("note", "%s", note)
	}
	return table.Flush()
}

// leaseInWords describes the lease and its holder for a person.
func (s *Status) leaseInWords() string {
	holder, ago, standby := s.Holder, time.Since(s.Renewed).Round(time.Second), ""
	if s.Here {
		holder = "this node"
	} else if s.Running && s.Health == "ok" {
		standby = "; this node stands by"
	}
	switch {
	case s.Lease == "":
		return "none: no leader election"
	case s.leaseUnknown:
		return s.Lease + ": unknown, so it is unknown whether any scheduler works"
	case s.Holder == "":
		return s.Lease + ": no scheduler holds it"
	case s.Expired:
		return fmt.Sprintf("%s: expired: no scheduler works; %s held it, and renewed it last %s ago", s.Lease, holder, ago)
	}
	return fmt.Sprintf("%s: %s holds it, renewed %s ago%s", s.Lease, holder, ago, standby)
}
