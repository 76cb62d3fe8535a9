// SPDX-License-Identifier: Apache-2.0

// Package carried holds the plugins of other projects in a kube-scheduler. Code that is generated from modules.yaml
// registers them, the command adds them to the registry, and configcheck checks their CustomResourceDefinitions.
package carried

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Plugin is a plugin of another project, or one of ours that needs CustomResourceDefinitions.
type Plugin struct {
	Name string
	// New is nil for a plugin of ours, which is in the registry already and calls Check itself.
	New frameworkruntime.PluginFactory
	// CRDs are needed to create the plugin: without them, New waits for ever.
	CRDs []CRD
}

// CRD is a CustomResourceDefinition.
type CRD struct {
	Name, Group, Version, Resource string
}

// plugins is written only by init functions.
var plugins []Plugin

// Register is called by init functions.
func Register(plugin Plugin) {
	plugins = append(plugins, plugin)
}

// AddTo adds the plugins to a registry. It is an app.Option of kube-scheduler. It fails if a name is already
// registered.
func AddTo(registry frameworkruntime.Registry) error {
	for _, plugin := range plugins {
		if plugin.New == nil {
			continue
		}
		if err := registry.Register(plugin.Name, plugin.make); err != nil {
			return err
		}
	}
	return nil
}

// make creates the plugin, unless Check fails.
func (p Plugin) make(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	if err := p.Check(handle.KubeConfig()); err != nil {
		return nil, err
	}
	return p.New(args, handle)
}

// Check returns an error if the cluster lacks the plugin's CustomResourceDefinitions, or the scheduler may not read
// their objects. It returns none if the API server does not answer: then the plugin waits for it, as the scheduler
// does.
func (p Plugin) Check(config *restclient.Config) error {
	missing, err := p.missing(config)
	if apierrors.IsForbidden(err) {
		return errors.New(forbidden(err))
	}
	if err != nil {
		klog.InfoS("Failed to check the CustomResourceDefinitions of a plugin", "plugin", p.Name, "reason", err)
	}
	if len(missing) > 0 {
		return errors.New(text(missing))
	}
	return nil
}

// Missing returns a line for each plugin among names whose CustomResourceDefinitions the cluster lacks, or may lack
// because it does not answer, with the next command. It ignores names of plugins that are not registered here.
func Missing(names map[string]bool, kubeConfig func() (*restclient.Config, error)) []string {
	var lines []string
	for _, plugin := range plugins {
		if !names[plugin.Name] || len(plugin.CRDs) == 0 {
			continue
		}
		var missing []string
		config, err := kubeConfig()
		if err == nil {
			missing, err = plugin.missing(config)
		}
		switch {
		case apierrors.IsForbidden(err):
			lines = append(lines, fmt.Sprintf("plugin %s: %s", plugin.Name, forbidden(err)))
		case err != nil:
			var all []string
			for _, crd := range plugin.CRDs {
				all = append(all, crd.Name)
			}
			lines = append(lines, fmt.Sprintf("plugin %s needs the CustomResourceDefinition %s, but it is unknown whether the cluster has it: %v; next: %s, if it does not",
				plugin.Name, strings.Join(all, " and "), err, apply(all)))
		case len(missing) > 0:
			lines = append(lines, fmt.Sprintf("plugin %s: %s", plugin.Name, text(missing)))
		}
	}
	sort.Strings(lines)
	return lines
}

func text(missing []string) string {
	return fmt.Sprintf("the cluster does not have the CustomResourceDefinition %s; next: %s", strings.Join(missing, " and "), apply(missing))
}

func apply(names []string) string {
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = "-f crds/" + name + ".yaml"
	}
	return fmt.Sprintf("kubectl apply %s, from the release bundle", strings.Join(files, " "))
}

func forbidden(err error) string {
	return fmt.Sprintf("%v; next: kubectl apply -f manifests/rbac/, from the release bundle", err)
}

// missing returns the names of the CRDs that the API server does not serve. It returns an error too if the objects of a
// CRD may not be listed, because then the plugin would wait for ever.
func (p Plugin) missing(config *restclient.Config) ([]string, error) {
	var names []string
	for _, crd := range p.CRDs {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		served, err := client.ServerResourcesForGroupVersion(crd.Group + "/" + crd.Version)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		found := false
		if err == nil {
			for _, resource := range served.APIResources {
				found = found || resource.Name == crd.Resource
			}
		}
		if !found {
			names = append(names, crd.Name)
			continue
		}
		list := client.RESTClient().Get().AbsPath("apis", crd.Group, crd.Version, crd.Resource).Param("limit", "1")
		if err := list.Do(context.Background()).Error(); err != nil {
			return nil, err
		}
	}
	return names, nil
}
