// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"kube-scheduler-fork/build/localcluster"
)

// noExtender is the value of EXTENDER that starts none.
const noExtender = "none"

// extenderPlan is the extender that a run starts, and the extenders of the scheduler's configuration that it replaces.
type extenderPlan struct {
	// config is the file with its plugins, or empty if none is started.
	config, profile string
	// replaces is the address of the extenders that it replaces; empty means all on loopback.
	replaces string
	// replaced are the URLs of these in the configuration.
	replaced []string
	// notes are printed.
	notes []string
}

// planExtender chooses the extender to start, and checks its inputs. It replaces the user's own extenders only with
// EXTENDER, and otherwise only those at the documented address.
func (o *Options) planExtender() (extenderPlan, error) {
	local, err := localcluster.ReadExtenders(o.Config, "")
	if err != nil {
		return extenderPlan{}, err
	}
	p := extenderPlan{config: o.ExtenderConfig, profile: o.ExtenderProfile, replaced: local}
	switch p.config {
	case noExtender:
		p.config, p.replaced = "", nil
	case "":
		documented, err := localcluster.ReadExtenders(o.Config, localcluster.DocumentedExtender)
		if err != nil {
			return extenderPlan{}, err
		}
		if p.replaced = nil; len(documented) > 0 && o.DefaultExtenderConfig != "" {
			p.config, p.replaces, p.replaced = o.DefaultExtenderConfig, localcluster.DocumentedExtender, documented
		}
	default:
		if len(local) == 0 {
			return extenderPlan{}, fmt.Errorf("%s names no extender on loopback, so the scheduler would not call that of %s; "+
				"next: add one to its extenders, with urlPrefix: %s, or leave EXTENDER out",
				o.Config, p.config, localcluster.DocumentedExtender)
		}
	}
	p.notes = o.extenderNotes(p, local)
	if p.config == "" {
		if p.profile != "" {
			return extenderPlan{}, fmt.Errorf("EXTENDER_PROFILE=%s: no extender is started; "+
				"next: give EXTENDER too, or leave it out", p.profile)
		}
		return p, nil
	}
	return p, o.checkExtender(p)
}

// extenderNotes returns notes about extenders that are not started.
func (o *Options) extenderNotes(p extenderPlan, local []string) []string {
	var alone []string
	for _, url := range local {
		if !slices.Contains(p.replaced, url) {
			alone = append(alone, url)
		}
	}
	switch {
	case len(alone) > 0:
		return []string{fmt.Sprintf("note: the configuration names an extender on this machine (%s), and make run does not start it;\n"+
			"  next, if it is not running either: make run EXTENDER=FILE, with the scheduler configuration whose plugins it should serve",
			strings.Join(alone, ", "))}
	case p.config == "" && o.Extender != "" && o.ExtenderConfig != noExtender:
		return []string{fmt.Sprintf("note: no extender is started: %s names none at %s", o.Config, localcluster.DocumentedExtender)}
	}
	return nil
}

// checkExtender checks the files and the profile of the extender that is started.
func (o *Options) checkExtender(p extenderPlan) error {
	if o.Extender == "" {
		return fmt.Errorf("cannot start an extender with %s: no program was given; "+
			"next: make run, which builds it, or EXTENDER=%s", p.config, noExtender)
	}
	if _, err := exec.LookPath(o.Extender); err != nil {
		return fmt.Errorf("the extender's program: %w; next: make run, which builds it, or EXTENDER=%s",
			err, noExtender)
	}
	profiles, err := localcluster.ReadProfiles(p.config)
	if err != nil {
		return fmt.Errorf("the extender's configuration: %w", err)
	}
	names := strings.Join(profiles, ", ")
	switch {
	case p.profile == "" && len(profiles) > 1:
		return fmt.Errorf("%s has several profiles (%s), and an extender serves one; "+
			"next: name it with EXTENDER_PROFILE", p.config, names)
	case p.profile != "" && !slices.Contains(profiles, p.profile):
		return fmt.Errorf("%s has no profile %s; next: give one of these with EXTENDER_PROFILE: %s",
			p.config, p.profile, names)
	}
	return nil
}
