//! Settings of sessions, and the values that can be chosen.

use std::sync::Arc;

use sayso_agent::settings::name_of_dialect;
use sayso_agent::{Catalog, Limits, Scenario, SetSettingsError, SettingsPatch};
use sayso_api::proto;
use sayso_review::ErrorKind;

use super::event::session_settings;
use super::{agent, session};
use crate::agent_sessions;
use crate::failure::Failure;
use crate::host::Host;

/// Reads a patch. Absent fields stay.
pub(super) fn patch(message: Option<proto::SessionSettingsPatch>) -> SettingsPatch {
    let Some(message) = message else { return SettingsPatch::default() };
    let proto::SessionSettingsPatch { model, dialect, upstream, scenario, limits, show_thinking, .. } = message;
    let limits = limits.into_option().map(|limits| Limits {
        turns: limits.turns,
        cost_micro_usd: limits.cost_micro_usd,
        time_ms: limits.time_ms,
    });
    SettingsPatch { model, dialect, upstream, scenario, limits, show_thinking, thinking_tokens: None }
}

pub(super) fn get(host: &Arc<Host>, named: Option<String>) -> Result<proto::GetSettingsResponse, Failure> {
    let catalog = agent_sessions::current_catalog(host);
    let settings = match named {
        Some(named) => {
            let live = agent_sessions::open(host, &session::resolve(host, &named)?)?;
            Some(agent(&live)?.settings())
        }
        // Without a key there are no settings yet, but the choices say what is missing.
        None => agent_sessions::new_settings(host, &SettingsPatch::default()).ok().map(|(_, settings)| settings),
    };
    Ok(proto::GetSettingsResponse {
        settings: settings.as_ref().map(session_settings).into(),
        choices: choices(&catalog).into(),
        ..Default::default()
    })
}

pub(super) fn set(host: &Arc<Host>, request: proto::SetSettingsRequest) -> Result<proto::SessionSettings, Failure> {
    let patch = patch(request.settings.into_option());
    let Some(named) = request.session else {
        return Ok(session_settings(&agent_sessions::set_new_settings(host, &patch)?));
    };
    let live = agent_sessions::open(host, &session::resolve(host, &named)?)?;
    let agent = agent(&live)?;
    let before = agent.settings();
    let settings = agent.set_settings(&patch).map_err(|error| match error {
        SetSettingsError::Invalid(error) => agent_sessions::invalid_settings(error),
        SetSettingsError::Record(error) => Failure::new(ErrorKind::Unavailable, error.to_string()).hint(error.hint),
    })?;
    if settings.model != before.model {
        // A paused request was meant for the model before.
        host.proxy.interceptor.end_session(&live.id);
    }
    Ok(session_settings(&settings))
}

fn choices(catalog: &Catalog) -> proto::SettingsChoices {
    let models = catalog.models.iter().map(|model| proto::settings_choices::Model {
        model: model.model.clone(),
        dialect: name_of_dialect(model.dialect).to_owned(),
        upstream: model.upstream.clone(),
        context_tokens: model.context_tokens,
        ..Default::default()
    });
    let upstreams = catalog.upstreams.iter().map(|upstream| proto::settings_choices::Upstream {
        name: upstream.name.clone(),
        dialects: upstream.dialects.iter().map(|api| name_of_dialect(*api).to_owned()).collect(),
        ready: upstream.is_ready,
        hint: upstream.hint.clone(),
        ..Default::default()
    });
    proto::SettingsChoices {
        models: models.collect(),
        upstreams: upstreams.collect(),
        scenarios: catalog.scenarios.names().map(str::to_owned).collect(),
        ..Default::default()
    }
}

pub(super) fn scenarios(host: &Host) -> proto::ListScenariosResponse {
    let catalog = agent_sessions::current_catalog(host);
    let scenario = |scenario: &Scenario| proto::Scenario {
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        tools: scenario.tools.clone(),
        model: scenario.model.clone(),
        file: scenario.file.clone(),
        read_only: scenario.is_read_only(),
        proposes_only: scenario.proposes_only(),
        ..Default::default()
    };
    proto::ListScenariosResponse {
        scenarios: catalog.scenarios.all().map(scenario).collect(),
        problems: catalog.scenarios.problems().iter().map(ToString::to_string).collect(),
        ..Default::default()
    }
}
