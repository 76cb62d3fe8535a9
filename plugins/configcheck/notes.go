// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
)

// notes returns notes about settings that a scheduler accepts but that are seldom intended.
func (c *checked) notes() []string {
	var notes []string
	named := false
	for _, p := range c.profiles {
		named = named || p.SchedulerName == v1.DefaultSchedulerName
	}
	if !named {
		notes = append(notes, fmt.Sprintf("note: no profile is named %s: pods that name no scheduler stay Pending, "+
			"unless another scheduler of that name runs", v1.DefaultSchedulerName))
	}
	for _, p := range c.profiles {
		notes = append(notes, c.nameNotes(p)...)
		notes = append(notes, p.notes(c.Config.Extenders)...)
	}
	notes = append(notes, restrictedNotes(c.profiles)...)
	for i, extender := range c.Config.Extenders {
		if extender.EnableHTTPS && strings.HasPrefix(extender.URLPrefix, "http://") {
			notes = append(notes, fmt.Sprintf("note: extenders[%d].urlPrefix: begins with http://, so requests are not encrypted, even with enableHTTPS", i))
		}
	}
	notes = append(notes, c.missingFiles...)
	notes = append(notes, c.fileNotes()...)
	return append(notes, c.kubeconfigNotes()...)
}

// nameNotes returns notes about disabled plugins that do not exist, and about args of plugins that do not exist or that
// the profile does not enable.
func (c *checked) nameNotes(p checkedProfile) []string {
	var notes []string
	for _, point := range extensionPoints(p.Plugins) {
		for _, plugin := range point.Disabled {
			if _, found := c.registry[plugin.Name]; !found && plugin.Name != "*" {
				notes = append(notes, fmt.Sprintf("note: %s: this scheduler has no plugin of that name",
					p.path.Child("plugins", point.name, "disabled").Key(plugin.Name)))
			}
		}
	}
	// Default plugins have args even if the file has none.
	expected := sets.NewString(p.enabled.Names()...).Insert(c.defaults.Names()...)
	for i, pluginConfig := range p.PluginConfig {
		path := p.path.Child("pluginConfig").Index(i)
		if _, found := c.registry[pluginConfig.Name]; !found {
			notes = append(notes, fmt.Sprintf("note: %s: this scheduler has no plugin named %s", path, pluginConfig.Name))
		} else if !expected.Has(pluginConfig.Name) {
			notes = append(notes, fmt.Sprintf("note: %s: %s is not enabled in this profile", path, pluginConfig.Name))
		}
	}
	return notes
}

// LogNotes logs the notes about settings without effect that need neither the plugins nor another check: a start has no
// other place for them.
func (s Start) LogNotes() {
	notes := append(s.flagNotes(), s.fileNotes()...)
	for i := range s.Config.Profiles {
		_, without := validation.Points(field.NewPath("profiles").Index(i), &s.Config.Profiles[i])
		notes = append(notes, without...)
	}
	for _, note := range notes {
		klog.Warning(strings.TrimPrefix(note, "note: "))
	}
}

func (s Start) flagNotes() []string {
	if s.ConfigFile == "" || s.KubeconfigFlag == "" {
		return nil
	}
	return []string{"note: with --config, the flag --kubeconfig is ignored; set clientConnection.kubeconfig"}
}

func (c *checked) kubeconfigNotes() []string {
	notes := c.flagNotes()
	switch kubeconfig := c.Config.ClientConnection.Kubeconfig; {
	case kubeconfig == "" && c.Master != "":
	case kubeconfig == "":
		notes = append(notes, "note: clientConnection.kubeconfig is not set: the scheduler finds the API server only if it runs in a pod of the cluster "+
			"that has a service account's token, or with --master")
	default:
		if _, err := os.Stat(kubeconfig); err != nil {
			notes = append(notes, fmt.Sprintf("note: clientConnection.kubeconfig is not to be found on this machine: %v", err))
		}
	}
	return notes
}
