//! The types of the store's columns and of what SQL makes of them, as ODBC and JDBC number them.

use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};

/// What CommandGetXdbcTypeInfo tells. Lists and maps have no number there, and are left out.
pub(super) fn types() -> Result<XdbcTypeInfoData, FlightError> {
    let mut builder = XdbcTypeInfoDataBuilder::new();
    let plain = |name: &str, data_type: XdbcDataType| XdbcTypeInfo {
        type_name: name.into(),
        local_type_name: Some(name.into()),
        data_type,
        sql_data_type: data_type,
        nullable: Nullable::NullabilityNullable,
        searchable: Searchable::Basic,
        ..XdbcTypeInfo::default()
    };
    let quoted = |info: XdbcTypeInfo, prefix: &str| XdbcTypeInfo {
        literal_prefix: Some(prefix.into()),
        literal_suffix: Some("'".into()),
        ..info
    };
    // Decimal digits that always fit, of the integers; of doubles, bits (IEEE 754).
    for (name, data_type, digits, is_unsigned) in [
        ("TINYINT UNSIGNED", XdbcDataType::XdbcTinyint, 3, true),
        ("SMALLINT UNSIGNED", XdbcDataType::XdbcSmallint, 5, true),
        ("INT UNSIGNED", XdbcDataType::XdbcInteger, 10, true),
        ("BIGINT UNSIGNED", XdbcDataType::XdbcBigint, 20, true),
        ("BIGINT", XdbcDataType::XdbcBigint, 19, false),
    ] {
        builder.append(XdbcTypeInfo {
            column_size: Some(digits),
            unsigned_attribute: Some(is_unsigned),
            num_prec_radix: Some(10),
            minimum_scale: Some(0),
            maximum_scale: Some(0),
            auto_increment: Some(false),
            ..plain(name, data_type)
        });
    }
    builder.append(XdbcTypeInfo {
        column_size: Some(53),
        unsigned_attribute: Some(false),
        num_prec_radix: Some(2),
        auto_increment: Some(false),
        ..plain("DOUBLE", XdbcDataType::XdbcDouble)
    });
    builder.append(XdbcTypeInfo {
        column_size: Some(1),
        ..plain("BOOLEAN", XdbcDataType::XdbcBit)
    });
    builder.append(XdbcTypeInfo {
        case_sensitive: true,
        searchable: Searchable::Full,
        ..quoted(plain("VARCHAR", XdbcDataType::XdbcVarchar), "'")
    });
    builder.append(XdbcTypeInfo {
        column_size: Some("2026-01-31T12:00:00.123456789Z".len() as i32),
        minimum_scale: Some(9),
        maximum_scale: Some(9),
        sql_data_type: XdbcDataType::XdbcDatetime,
        datetime_subcode: Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp),
        ..quoted(plain("TIMESTAMP", XdbcDataType::XdbcTimestamp), "TIMESTAMP '")
    });
    builder.build()
}
