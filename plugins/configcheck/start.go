// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
)

// Start holds the configuration of a kube-scheduler.
type Start struct {
	// ConfigFile is the path of the configuration file; empty if there is none and flags alone define the
	// configuration.
	ConfigFile string
	// Config is the configuration, defaulted and validated, after flags have overridden the file.
	Config *schedulerconfig.KubeSchedulerConfiguration
	// Registry has the plugins that the command adds to those of the scheduler. May be nil.
	Registry frameworkruntime.Registry
	// KubeconfigFlag is the value of the flag --kubeconfig.
	KubeconfigFlag string
	// Master is the value of the flag --master.
	Master string
}

// Validate does everything that kube-scheduler does between reading its configuration and its first request, unless err
// reports that the configuration could not be read. It creates every profile and all of its plugins, with a client that
// sends no request; the extenders, with those of their files that exist on this machine; and the leader election. It
// contacts no server, does not listen, and writes no file.
//
// Validate prints each error on a line of errOut, and returns an error with their number. Without errors, it prints a
// summary of the profiles to out, and notes about surprising settings. Then it checks the sources of each plugin that
// is a services.SourceChecker, and prints the results to out, with failures as warnings. Only for such plugins, and
// for plugins of other projects that need CustomResourceDefinitions, does it send requests to the API server.
func Validate(out, errOut io.Writer, start Start, err error) error {
	what := start.ConfigFile
	if what == "" {
		what = "the configuration from the flags"
	}
	var c *checked
	if err == nil {
		c, err = start.check()
	}
	if err != nil {
		messages := Lines(err)
		for _, line := range messages {
			fmt.Fprintln(errOut, "error:", line)
		}
		return fmt.Errorf("%s: %s, listed above", what, count(len(messages), "error"))
	}
	fmt.Fprintf(out, "%s is valid (%s)\n", what, start.Config.APIVersion)
	for _, line := range append(c.summary(), c.notes()...) {
		fmt.Fprintln(out, line)
	}
	c.checkSources(out)
	c.checkCarried(out)
	return nil
}

// checked is a valid configuration, and what a start makes of it.
type checked struct {
	Start
	registry frameworkruntime.Registry
	profiles []checkedProfile
	// defaults are the plugins of the default profile, which depends on the version of the configuration.
	defaults *schedulerconfig.Plugins
	// sources are those of all profiles.
	sources []source
	// missingFiles are notes about files of extenders that do not exist on this machine.
	missingFiles []string
}

// checkedProfile is a profile as it is configured, with the plugins that a start enables.
type checkedProfile struct {
	*schedulerconfig.KubeSchedulerProfile
	path    *field.Path
	enabled *schedulerconfig.Plugins
}

// check creates a scheduler, which stops at the first error, and then each part separately, to find all errors.
func (s Start) check() (*checked, error) {
	c := &checked{Start: s, registry: frameworkplugins.NewInTreeRegistry()}
	if err := c.registry.Merge(s.Registry); err != nil {
		return nil, err
	}
	offline, err := newOffline()
	if err != nil {
		return nil, err
	}
	cfg := s.Config.DeepCopy()
	for i := range cfg.Extenders {
		for _, missing := range dropMissingFiles(&cfg.Extenders[i]) {
			c.missingFiles = append(c.missingFiles, fmt.Sprintf("note: extenders[%d].tlsConfig.%s", i, missing))
		}
	}
	stop := make(chan struct{})
	defer close(stop)
	// The scheduler comes first, because it adds the extenders' ignored resources to the args of NodeResourcesFit.
	made, startErr := scheduler.New(offline.client, offline.informers, offline.dynamicInformers, newRecorder, stop,
		scheduler.WithComponentConfigVersion(cfg.TypeMeta.APIVersion),
		scheduler.WithKubeConfig(offline.kubeConfig),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(s.Registry),
		scheduler.WithExtenders(cfg.Extenders...),
		scheduler.WithParallelism(cfg.Parallelism),
	)
	var errs []error
	for i := range cfg.Profiles {
		sources, profileErrs := offline.tryProfile(field.NewPath("profiles").Index(i), &cfg.Profiles[i], c.registry)
		c.sources, errs = append(c.sources, sources...), append(errs, profileErrs...)
	}
	for i := range cfg.Extenders {
		if _, err := scheduler.NewHTTPExtender(&cfg.Extenders[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field.NewPath("extenders").Index(i), err))
		}
	}
	if err := offline.leaderElectionError(cfg.LeaderElection); err != nil {
		errs = append(errs, fmt.Errorf("leaderElection: %w", err))
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	if startErr != nil {
		return nil, startErr
	}
	for i := range s.Config.Profiles {
		p := &s.Config.Profiles[i]
		enabled := made.Profiles[p.SchedulerName].ListPlugins()
		c.profiles = append(c.profiles, checkedProfile{p, field.NewPath("profiles").Index(i), enabled})
	}
	c.defaults, err = offline.defaultPlugins(cfg.APIVersion)
	return c, err
}

// offline holds the parts of a scheduler that must not reach a cluster. Its informers are never started.
type offline struct {
	kubeConfig       *restclient.Config
	client           clientset.Interface
	informers        informers.SharedInformerFactory
	dynamicInformers dynamicinformer.DynamicSharedInformerFactory
}

func newOffline() (*offline, error) {
	// Plugins create their own clients from it.
	kubeConfig := &restclient.Config{Host: "https://cluster.invalid", Transport: refusing{}}
	client, err := clientset.NewForConfig(kubeConfig)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(kubeConfig)
	if err != nil {
		return nil, err
	}
	return &offline{
		kubeConfig:       kubeConfig,
		client:           client,
		informers:        scheduler.NewInformerFactory(client, 0),
		dynamicInformers: dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0),
	}, nil
}

// refusing is an http.RoundTripper that sends nothing. It answers list requests with an empty list, because third-party
// plugins wait in New for their own informers.
type refusing struct{}

var errRefused = errors.New("no request is sent while a configuration is validated")

func (refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		request.Body.Close()
	}
	switch query := request.URL.Query(); {
	case query.Get("watch") == "true":
		<-request.Context().Done()
		return nil, request.Context().Err()
	case request.Method == http.MethodGet && query.Get("resourceVersion") != "":
		return &http.Response{
			StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"metadata":{"resourceVersion":"1"},"items":[]}`)),
		}, nil
	}
	return nil, errRefused
}

// newRecorder returns a recorder that discards events.
func newRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }

// failedPlugin replaces a plugin whose New returned an error, so that the framework creates the other plugins too.
type failedPlugin string

func (f failedPlugin) Name() string { return string(f) }

// tryProfile creates the framework of a profile. It returns the plugins that read from a server, and the errors of
// those that could not be created. Without such errors, it returns the framework's first error about the profile.
func (o *offline) tryProfile(path *field.Path, p *schedulerconfig.KubeSchedulerProfile, registry frameworkruntime.Registry) ([]source, []error) {
	var sources []source
	errs := wrongPlugins(path.Child("plugins"), p.Plugins, registry)
	collecting := make(frameworkruntime.Registry, len(registry))
	for name, factory := range registry {
		name, factory := name, factory
		collecting[name] = func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := factory(args, handle)
			if err != nil {
				for _, line := range Lines(err) {
					errs = append(errs, fmt.Errorf("%s: plugin %s: %s", path, name, line))
				}
				return failedPlugin(name), nil
			}
			if checker, ok := plugin.(services.SourceChecker); ok {
				sources = append(sources, source{p.SchedulerName, name, checker})
			}
			return plugin, nil
		}
	}
	if _, err := o.newFramework(collecting, p); err != nil && len(errs) == 0 {
		return nil, []error{fmt.Errorf("%s: %w", path, err)}
	}
	// The framework creates plugins in random order.
	sort.Slice(sources, func(i, j int) bool { return sources[i].plugin < sources[j].plugin })
	sort.SliceStable(errs, func(i, j int) bool { return errs[i].Error() < errs[j].Error() })
	return sources, errs
}

// defaultPlugins returns the plugins of the default profile in a version of the configuration.
func (o *offline) defaultPlugins(apiVersion string) (*schedulerconfig.Plugins, error) {
	document := encode(metav1.TypeMeta{APIVersion: apiVersion, Kind: configurationKind})
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(document, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg := object.(*schedulerconfig.KubeSchedulerConfiguration)
	framework, err := o.newFramework(frameworkplugins.NewInTreeRegistry(), &cfg.Profiles[0])
	if err != nil {
		return nil, err
	}
	return framework.ListPlugins(), nil
}

func (o *offline) newFramework(registry frameworkruntime.Registry, p *schedulerconfig.KubeSchedulerProfile) (framework.Framework, error) {
	return frameworkruntime.NewFramework(registry, p,
		frameworkruntime.WithClientSet(o.client),
		frameworkruntime.WithKubeConfig(o.kubeConfig),
		frameworkruntime.WithInformerFactory(o.informers),
		frameworkruntime.WithSnapshotSharedLister(internalcache.NewEmptySnapshot()),
		frameworkruntime.WithPodNominator(internalqueue.NewPodNominator(o.informers.Core().V1().Pods().Lister())),
		frameworkruntime.WithEventRecorder(newRecorder("")),
	)
}

// instead has what to use for the plugins that an earlier version of this image had.
var instead = map[string]string{
	"TargetLoadPacking":          "; use NodeLoad with the strategy TargetUtilization: docs/known-as.md",
	"LoadVariationRiskBalancing": "; use NodeLoad with the strategy Risk: docs/known-as.md",
	"PodState":                   "; it is sample code, which make add-module brings back: docs/modules.md",
	"QOSSort":                    "; it is sample code, which make add-module brings back: docs/modules.md",
}

// wrongPlugins returns an error for each enabled plugin that does not exist or has a negative weight, which upstream
// accepts at some extension points.
func wrongPlugins(path *field.Path, plugins *schedulerconfig.Plugins, registry frameworkruntime.Registry) []error {
	var errs []error
	for _, point := range extensionPoints(plugins) {
		for _, plugin := range point.Enabled {
			path := path.Child(point.name, "enabled").Key(plugin.Name)
			if _, found := registry[plugin.Name]; !found {
				errs = append(errs, fmt.Errorf("%s: this scheduler has no plugin of that name%s", path, instead[plugin.Name]))
			}
			if plugin.Weight < 0 {
				errs = append(errs, field.Invalid(path.Child("weight"), plugin.Weight, "must not be negative"))
			}
		}
	}
	return errs
}

// leaderElectionError creates the leader election as kube-scheduler does, and returns its error.
func (o *offline) leaderElectionError(cfg componentbaseconfig.LeaderElectionConfiguration) error {
	if !cfg.LeaderElect {
		return nil
	}
	lock, err := resourcelock.New(cfg.ResourceLock, cfg.ResourceNamespace, cfg.ResourceName, o.client.CoreV1(), o.client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "validated"})
	if err != nil {
		return err
	}
	_, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: cfg.LeaseDuration.Duration,
		RenewDeadline: cfg.RenewDeadline.Duration,
		RetryPeriod:   cfg.RetryPeriod.Duration,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
		Name: "validated",
	})
	return err
}
